"""The HTTP face: the registry as plain REST, and the documents that describe it."""
