"""Simulated providers."""
