"""OAuth 2.1 for hosts that only know that: it ends in an access token that is bound to an allowance."""
