"""The data: sources, tools and their simulated twins. Knows no transport and no billing."""
