"""Define the tools for credits: buying them, and checking the balance and the receipts."""
