"""Define the premium tools: one module each."""
