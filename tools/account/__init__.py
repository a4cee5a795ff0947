"""Tools that manage what belongs to a token."""
