"""Define the free tools: one module each."""
