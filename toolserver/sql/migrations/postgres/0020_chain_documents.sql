-- concurrently: by which the book of the chain finds whose an address is, and what a transaction was for.

CREATE INDEX CONCURRENTLY IF NOT EXISTS old_quote_address ON old_quote(address) WHERE hd_index IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS x402_payment_tx ON x402_payment(tx_hash) WHERE tx_hash IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS x402_confirmation_tx ON x402_confirmation(tx_hash) WHERE tx_hash IS NOT NULL;
