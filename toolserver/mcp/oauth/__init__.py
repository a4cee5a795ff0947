"""OAuth 2.1 for hosts that support nothing else. It issues access tokens that are bound to an allowance."""
