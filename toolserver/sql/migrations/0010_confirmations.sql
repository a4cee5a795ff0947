-- What the chain says of payments after they were credited, by every RPC server that answers; and money that waits for a person.

ALTER TABLE tx_credit ADD COLUMN agreed_at INTEGER;       -- a second RPC server has reported the same
ALTER TABLE tx_credit ADD COLUMN disputed_since INTEGER;  -- servers report differently
UPDATE tx_credit SET agreed_at = final_at WHERE final_at IS NOT NULL;
CREATE INDEX tx_credit_credited_at ON tx_credit(credited_at);
CREATE INDEX tx_credit_unagreed ON tx_credit(credited_at) WHERE agreed_at IS NULL;

-- A signed payment that was made: where it is, and whether it is still there.
CREATE TABLE x402_confirmation(
  payload        BLOB PRIMARY KEY REFERENCES x402_payment(payload),
  tx_hash        BLOB CHECK (length(tx_hash) = 32),  -- NULL: the one of the payment; else it moved to another
  block_number   INTEGER,
  block_hash     BLOB,
  agreed_at      INTEGER,
  disputed_since INTEGER,
  missing_since  INTEGER,
  final_at       INTEGER,                            -- NULL: a reorganisation of the chain could still undo it
  undone_at      INTEGER,
  taken_back     INTEGER,
  lost           INTEGER CHECK (lost >= 0),
  CHECK ((undone_at IS NULL) = (lost IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX x402_confirmation_watched ON x402_confirmation(payload) WHERE final_at IS NULL AND undone_at IS NULL;
CREATE INDEX x402_confirmation_case ON x402_confirmation(payload) WHERE undone_at IS NOT NULL OR disputed_since IS NOT NULL;
CREATE TRIGGER x402_confirmation_is_never_deleted BEFORE DELETE ON x402_confirmation
BEGIN SELECT RAISE(ABORT, 'a confirmation is never deleted'); END;
CREATE TRIGGER x402_confirmation_stays_undone BEFORE UPDATE ON x402_confirmation WHEN OLD.undone_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'what was undone stays undone'); END;
INSERT INTO x402_confirmation(payload, final_at) SELECT payload, settled_at FROM x402_payment WHERE state = 'settled';
CREATE TRIGGER x402_payment_is_watched AFTER UPDATE OF state ON x402_payment
WHEN NEW.state = 'settled' AND OLD.state = 'settling'
BEGIN INSERT INTO x402_confirmation(payload) VALUES(NEW.payload) ON CONFLICT DO NOTHING; END;
CREATE INDEX x402_payment_begun_at ON x402_payment(begun_at);

-- Transfers beyond what is sold without a person: credited when the operator has approved them.
CREATE TABLE payment_review(
  tx_hash     BLOB PRIMARY KEY CHECK (length(tx_hash) = 32),
  purchase    INTEGER NOT NULL REFERENCES purchase(id),
  amount      INTEGER NOT NULL CHECK (amount > 0),
  reason      TEXT NOT NULL,
  at          INTEGER NOT NULL,
  approved_at INTEGER
) STRICT, WITHOUT ROWID;
