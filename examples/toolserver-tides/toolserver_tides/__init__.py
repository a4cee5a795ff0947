"""Provide tools about the tide in one harbour."""
