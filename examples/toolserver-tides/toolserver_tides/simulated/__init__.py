"""Hold the simulated providers."""
