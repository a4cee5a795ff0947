"""Buying credits: a quote, a transfer of USDC on Base, a token for it."""
