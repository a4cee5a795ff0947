"""Payments by x402: the caller signs a USDC authorisation, a facilitator moves the money. Off unless it is set up."""
