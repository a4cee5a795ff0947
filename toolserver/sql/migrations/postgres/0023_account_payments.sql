-- concurrently: by which the payments of an account are found for its statement (money/chain/sql_chain_transfers.py).

CREATE INDEX CONCURRENTLY IF NOT EXISTS tx_credit_token ON tx_credit(token);
CREATE INDEX CONCURRENTLY IF NOT EXISTS tx_reversal_token ON tx_reversal(token);
CREATE INDEX CONCURRENTLY IF NOT EXISTS quote_topup_token ON quote_topup(token);
CREATE INDEX CONCURRENTLY IF NOT EXISTS x402_payment_token ON x402_payment(token) WHERE token IS NOT NULL;
