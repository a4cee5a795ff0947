"""Free tools: one module each."""
