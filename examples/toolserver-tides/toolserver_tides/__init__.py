"""Tools about the tide in one harbour."""
