"""Keep accounts of credits: balances, the price of each call, and the transfers that prove both."""
