"""Define the tools that manage a token's data: its statement, allowances, reissue and webhooks."""
