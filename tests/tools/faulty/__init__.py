"""The real engine on the simulated world with one thing wrong, in simulated time."""
