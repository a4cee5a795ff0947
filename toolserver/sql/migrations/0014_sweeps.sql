-- Deposits that were moved on by `toolserver sweep submit`: written before anything is sent. Times are milliseconds since
-- 1970, amounts 0.000001 USDC.

CREATE TABLE sweep(
  payer    BLOB NOT NULL CHECK (length(payer) = 20),   -- the deposit address
  nonce    BLOB NOT NULL CHECK (length(nonce) = 32),   -- of its authorisation: it is spent once
  payee    BLOB NOT NULL CHECK (length(payee) = 20),
  amount   INTEGER NOT NULL CHECK (amount > 0),
  tx_hash  BLOB CHECK (length(tx_hash) = 32),          -- NULL: it was used by a transaction that we did not send
  begun_at INTEGER NOT NULL,
  done_at  INTEGER,                                    -- the chain has it
  PRIMARY KEY (payer, nonce)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER sweep_is_never_deleted BEFORE DELETE ON sweep
BEGIN SELECT RAISE(ABORT, 'a sweep is never deleted'); END;
CREATE TRIGGER sweep_keeps_its_terms BEFORE UPDATE ON sweep
WHEN (NEW.payer, NEW.nonce, NEW.payee, NEW.amount) IS NOT (OLD.payer, OLD.nonce, OLD.payee, OLD.amount)
  OR OLD.done_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sweep keeps its terms'); END;
