"""The server that the MCP conformance suite tests: our tools, and fixtures for what the suite calls by name."""
