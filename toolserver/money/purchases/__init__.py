"""Sells credits: a quote, a transfer of USDC on Base that pays it, and a token with the credits."""
