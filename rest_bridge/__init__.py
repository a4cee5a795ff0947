"""The HTTP face: serves the registry as plain REST, and the documents that describe it."""
