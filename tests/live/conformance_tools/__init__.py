"""A package of tools as somebody else would write one, with names that the MCP conformance suite asks for."""
