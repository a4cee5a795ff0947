"""Hold the sources that the tools read."""
