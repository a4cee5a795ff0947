"""Hold the data side: sources, tools and simulated providers, independent of transports and billing."""
