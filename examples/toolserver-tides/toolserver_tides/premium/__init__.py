"""Hold the tools that cost credits."""
