"""Everything that has to do with money: the ledger, purchases, receipts, payment per call, and the books over all."""
