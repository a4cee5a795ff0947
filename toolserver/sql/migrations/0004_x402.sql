-- Payments by x402: what became of each signed authorisation (EIP-3009). Times are milliseconds since 1970, amounts
-- 0.000001 USDC; hashes and addresses are bytes, so that one authorisation is one row however it is spelled.

CREATE TABLE x402_payment(
  payload      BLOB PRIMARY KEY CHECK (length(payload) = 32),   -- SHA-256 of the authorisation and its signature
  authorizer   BLOB NOT NULL CHECK (length(authorizer) = 20),
  nonce        BLOB NOT NULL CHECK (length(nonce) = 32),
  amount       INTEGER NOT NULL CHECK (amount > 0),
  request      TEXT NOT NULL,                                   -- what it pays for: one call, or a top-up
  state        TEXT NOT NULL CHECK (state IN ('settling', 'settled')),
  tx_hash      BLOB CHECK (length(tx_hash) = 32),               -- while settling: as far as anybody has told us
  valid_before INTEGER NOT NULL,
  claim        BLOB CHECK (length(claim) = 32),                 -- SHA-256 of the key by which its sender may ask again
  token        TEXT REFERENCES token(hash),                     -- what a top-up was credited to
  credits      INTEGER CHECK (credits > 0),
  sealed       BLOB,                                            -- the new token under that key, until it is used
  sealed_until INTEGER,
  begun_at     INTEGER NOT NULL,                                -- written before the payment is handed on
  settled_at   INTEGER,
  UNIQUE (authorizer, nonce),
  CHECK ((state = 'settled') = (settled_at IS NOT NULL)),
  CHECK (state = 'settling' OR tx_hash IS NOT NULL),
  CHECK ((token IS NULL) = (credits IS NULL)),
  CHECK ((sealed IS NULL) = (sealed_until IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX x402_payment_open ON x402_payment(begun_at) WHERE state = 'settling';
CREATE INDEX x402_payment_sealed ON x402_payment(sealed_until) WHERE sealed IS NOT NULL;

CREATE TRIGGER x402_payment_keeps_its_terms BEFORE UPDATE ON x402_payment
WHEN (NEW.payload, NEW.authorizer, NEW.nonce, NEW.amount, NEW.request, NEW.valid_before, NEW.claim, NEW.begun_at)
  IS NOT (OLD.payload, OLD.authorizer, OLD.nonce, OLD.amount, OLD.request, OLD.valid_before, OLD.claim, OLD.begun_at)
BEGIN SELECT RAISE(ABORT, 'a payment keeps its terms'); END;
CREATE TRIGGER x402_payment_stays_settled BEFORE UPDATE ON x402_payment
WHEN OLD.state = 'settled' AND (NEW.state, NEW.tx_hash, NEW.settled_at) IS NOT (OLD.state, OLD.tx_hash, OLD.settled_at)
BEGIN SELECT RAISE(ABORT, 'what is settled stays settled'); END;
CREATE TRIGGER x402_payment_is_not_forgotten BEFORE DELETE ON x402_payment WHEN OLD.state = 'settled'
BEGIN SELECT RAISE(ABORT, 'what is settled is never deleted'); END;
