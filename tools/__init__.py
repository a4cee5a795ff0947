"""The data: sources, tools and simulated providers. It knows no transport and no billing."""
