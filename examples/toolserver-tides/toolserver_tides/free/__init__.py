"""Hold the free tools."""
