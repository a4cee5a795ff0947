"""The ten premium payloads as a paying caller gets them: over REST and MCP, from the simulated world."""
