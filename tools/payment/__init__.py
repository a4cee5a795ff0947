"""Tools around credits: buying them, and checking the balance and the receipts."""
