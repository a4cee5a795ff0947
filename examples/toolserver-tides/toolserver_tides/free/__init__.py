"""Tools that cost nothing."""
