"""Premium tools: one module each."""
