"""Describe the sources, one module per provider: how to request and read its answers, and how to judge them.

The modules are pure: they use no I/O and no clock.
"""
