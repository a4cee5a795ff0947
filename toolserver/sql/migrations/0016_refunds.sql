-- Money that is paid back, and tokens that replace lost ones. Times are milliseconds since 1970, amounts 0.000001 USDC.

-- Unspent credits that are paid back, to an address that the buyer proved.
CREATE TABLE refund(
  id         TEXT PRIMARY KEY,                                    -- also what the nonce on the chain is made of
  token      TEXT NOT NULL REFERENCES token(hash),
  payee      BLOB NOT NULL CHECK (length(payee) = 20),
  credits    INTEGER NOT NULL CHECK (credits > 0),
  amount     INTEGER NOT NULL CHECK (amount > 0),
  reason     TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('asked', 'booked', 'sent', 'paid', 'cancelled')),
  asked_at   INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,                                    -- until when the proof may come
  proof      TEXT,                                                -- how the buyer was known: 'payer' or 'token'
  payer      BLOB CHECK (length(payer) = 20),                     -- the account of ours that pays
  booked_at  INTEGER,                                             -- the credits left the token
  planned_at INTEGER,                                             -- an authorisation was written out to be signed
  tx_hash    BLOB CHECK (length(tx_hash) = 32),
  ended_at   INTEGER,                                             -- paid, or cancelled
  CHECK ((state IN ('asked', 'cancelled')) OR booked_at IS NOT NULL),
  CHECK ((booked_at IS NULL) = (payer IS NULL) AND (booked_at IS NULL) = (proof IS NULL)),
  CHECK ((state IN ('paid', 'cancelled')) = (ended_at IS NOT NULL)),
  CHECK (state NOT IN ('sent', 'paid') OR tx_hash IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX refund_of ON refund(token);
CREATE TRIGGER refund_is_never_deleted BEFORE DELETE ON refund
BEGIN SELECT RAISE(ABORT, 'a refund is never deleted'); END;
CREATE TRIGGER refund_keeps_its_terms BEFORE UPDATE ON refund
WHEN (NEW.id, NEW.token, NEW.payee, NEW.credits, NEW.amount, NEW.asked_at) IS NOT
    (OLD.id, OLD.token, OLD.payee, OLD.credits, OLD.amount, OLD.asked_at)
  OR (OLD.payer IS NOT NULL AND NEW.payer IS NOT OLD.payer) OR OLD.ended_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a refund keeps its terms'); END;

-- A lost token is replaced by another one, which opens the same account from then on.
ALTER TABLE token ADD COLUMN successor TEXT CHECK (length(successor) = 64);  -- SHA-256 of the newest; NULL: it was never lost
CREATE UNIQUE INDEX token_successor ON token(successor) WHERE successor IS NOT NULL;

CREATE TABLE reissue(
  id         TEXT PRIMARY KEY,
  token      TEXT NOT NULL REFERENCES token(hash),
  payer      BLOB NOT NULL CHECK (length(payer) = 20),            -- the one account that paid for all of its credits
  state      TEXT NOT NULL CHECK (state IN ('asked', 'waiting', 'done', 'cancelled')),
  asked_at   INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,                                    -- until when the signature may come
  proved_at  INTEGER,
  due_at     INTEGER,                                             -- from when on the token may be replaced
  ended_at   INTEGER,
  CHECK ((proved_at IS NULL) = (due_at IS NULL)),
  CHECK (state IN ('asked', 'cancelled') OR due_at IS NOT NULL),
  CHECK ((state IN ('done', 'cancelled')) = (ended_at IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX reissue_waiting ON reissue(token) WHERE state = 'waiting';
CREATE TRIGGER reissue_is_never_deleted BEFORE DELETE ON reissue
BEGIN SELECT RAISE(ABORT, 'a reissue is never deleted'); END;
CREATE TRIGGER reissue_keeps_its_terms BEFORE UPDATE ON reissue
WHEN (NEW.id, NEW.token, NEW.payer, NEW.asked_at) IS NOT (OLD.id, OLD.token, OLD.payer, OLD.asked_at)
  OR OLD.ended_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a reissue keeps its terms'); END;
