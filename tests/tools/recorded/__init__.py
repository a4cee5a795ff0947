"""What becomes of every recorded upstream body: read by a source, refused by it, or read by none of ours."""
