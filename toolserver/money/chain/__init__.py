"""Keeps the book of the chain: every transfer of USDC to or from our addresses, with its state and its history."""
