"""Its free tools."""
