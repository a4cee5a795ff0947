"""Tools that cost credits."""
