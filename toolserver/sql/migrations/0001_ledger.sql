-- Credits: who has how many, and every movement of them. Times are milliseconds since 1970, amounts whole credits.

CREATE TABLE account(
  id      INTEGER PRIMARY KEY,
  kind    TEXT NOT NULL CHECK (kind IN ('token', 'issued', 'revenue', 'suspense')),
  credits INTEGER NOT NULL DEFAULT 0,  -- posted in favour of the account
  debits  INTEGER NOT NULL DEFAULT 0,  -- posted against it
  pending INTEGER NOT NULL DEFAULT 0,  -- set aside, not yet posted
  CHECK (debits >= 0 AND pending >= 0 AND debits + pending <= credits)
) STRICT;

-- Our own accounts have no running totals: they are derived from `transfer`, so that no row is hot.
INSERT INTO account(id, kind) VALUES (1, 'issued'), (2, 'revenue'), (3, 'suspense');

CREATE TABLE token(
  hash          TEXT PRIMARY KEY CHECK (length(hash) = 64),  -- SHA-256, hex; the first 16 digits are the fingerprint
  account       INTEGER NOT NULL UNIQUE REFERENCES account(id),
  ref           TEXT NOT NULL UNIQUE,                        -- names the account to our own services, opens nothing
  issued_at     INTEGER NOT NULL,
  revoked_at    INTEGER,
  revoke_reason TEXT,
  CHECK ((revoked_at IS NULL) = (revoke_reason IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE transfer(
  seq      INTEGER PRIMARY KEY,
  kind     TEXT NOT NULL CHECK (kind IN ('posted', 'pending', 'post', 'void', 'reverse')),
  debit    INTEGER NOT NULL REFERENCES account(id),
  credit   INTEGER NOT NULL REFERENCES account(id),
  amount   INTEGER NOT NULL CHECK (amount > 0),
  resolves INTEGER REFERENCES transfer(seq),  -- the transfer a post, void or reverse answers
  cause    TEXT,                              -- what was paid for these credits, once and never again
  at       INTEGER NOT NULL,
  CHECK (debit <> credit),
  CHECK ((kind IN ('post', 'void', 'reverse')) = (resolves IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX transfer_settled_once ON transfer(resolves) WHERE kind IN ('post', 'void');
CREATE UNIQUE INDEX transfer_reversed_once ON transfer(resolves) WHERE kind = 'reverse';
CREATE UNIQUE INDEX transfer_paid_once ON transfer(cause) WHERE cause IS NOT NULL;

CREATE TRIGGER transfer_is_never_changed BEFORE UPDATE ON transfer
BEGIN SELECT RAISE(ABORT, 'a transfer is never changed'); END;
CREATE TRIGGER transfer_is_never_deleted BEFORE DELETE ON transfer
BEGIN SELECT RAISE(ABORT, 'a transfer is never deleted'); END;

CREATE TABLE reservation(
  call_id    TEXT PRIMARY KEY,
  account    INTEGER NOT NULL REFERENCES account(id),
  credits    INTEGER NOT NULL CHECK (credits > 0),
  state      TEXT NOT NULL CHECK (state IN ('open', 'posted', 'voided', 'reversed')),
  reason     TEXT,                            -- why nothing was charged
  endpoint   TEXT NOT NULL,
  service    TEXT NOT NULL,                   -- which service called; '' is this one
  transfer   INTEGER NOT NULL REFERENCES transfer(seq),
  expires_at INTEGER NOT NULL,
  settled_at INTEGER,
  CHECK ((state = 'open') = (settled_at IS NULL)),
  CHECK ((state IN ('voided', 'reversed')) = (reason IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_open ON reservation(expires_at) WHERE state = 'open';

CREATE TRIGGER reservation_moves_towards_no_charge BEFORE UPDATE ON reservation
WHEN NOT (
  NEW.call_id = OLD.call_id AND NEW.account = OLD.account AND NEW.credits = OLD.credits AND NEW.transfer = OLD.transfer
  AND ((OLD.state = 'open' AND NEW.state IN ('posted', 'voided')) OR (OLD.state = 'posted' AND NEW.state = 'reversed'))
)
BEGIN SELECT RAISE(ABORT, 'a reservation only moves towards no charge'); END;
CREATE TRIGGER reservation_is_never_deleted BEFORE DELETE ON reservation
BEGIN SELECT RAISE(ABORT, 'a reservation is never deleted'); END;

-- Answers by the caller's own key, for a day. `outcome` is NULL while the first call runs, or when it died running.
CREATE TABLE idempotency(
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  request    TEXT NOT NULL,
  call_id    TEXT NOT NULL,
  outcome    BLOB,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expires_at ON idempotency(expires_at);

-- Calls billed by a sister service, from before its first answer until ours was sent. `releasing` rows are an outbox.
CREATE TABLE journal(
  call_id TEXT PRIMARY KEY,
  state   TEXT NOT NULL CHECK (state IN ('reserving', 'committing', 'committed', 'releasing')),
  reason  TEXT,
  next_at INTEGER NOT NULL,
  tries   INTEGER NOT NULL DEFAULT 0,
  CHECK ((state = 'releasing') = (reason IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_due ON journal(next_at) WHERE state = 'releasing';
