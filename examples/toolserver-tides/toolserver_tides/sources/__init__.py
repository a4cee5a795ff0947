"""What the tools ask."""
