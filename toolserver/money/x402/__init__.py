"""Takes payments by x402: the caller signs a USDC authorisation, and a facilitator moves the money. Off by default."""
