"""Each provider's wire format, generated from a seed and a clock. Pure, like the sources, and independent of them."""
