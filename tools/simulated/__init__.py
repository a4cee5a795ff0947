"""Generate each provider's wire format from a seed and a clock. The modules are pure, as the
sources are, and do not use them.
"""
