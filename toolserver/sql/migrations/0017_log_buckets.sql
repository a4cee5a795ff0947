-- Calls that were not charged are booked as they happen; the log gets the buckets of an hour as leaves once it is over.

-- One row for each call, written in the transaction that released it. Times are milliseconds since 1970.
CREATE TABLE uncharged_call(
  seq      INTEGER PRIMARY KEY,
  hour     INTEGER NOT NULL,                              -- hours since 1970, UTC
  key      BLOB NOT NULL CHECK (length(key) = 32),        -- names one token, tool and reason in that hour, and opens none
  reason   TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  credits  INTEGER NOT NULL CHECK (credits >= 0),
  receipt  BLOB CHECK (length(receipt) = 32),             -- SHA-256 of the receipt's core; NULL: nobody took one
  at       INTEGER NOT NULL
) STRICT;
CREATE INDEX uncharged_call_by_bucket ON uncharged_call(hour, key);
CREATE TRIGGER uncharged_call_is_never_changed BEFORE UPDATE ON uncharged_call
BEGIN SELECT RAISE(ABORT, 'an uncharged call is never changed'); END;
CREATE TRIGGER uncharged_call_is_never_deleted BEFORE DELETE ON uncharged_call
BEGIN SELECT RAISE(ABORT, 'an uncharged call is never deleted'); END;

-- The bucket that a leaf stands for; NULL: a leaf of one call, as they all were before.
ALTER TABLE no_charge ADD COLUMN hour INTEGER;
ALTER TABLE no_charge ADD COLUMN key BLOB CHECK (length(key) = 32);
CREATE UNIQUE INDEX no_charge_by_bucket ON no_charge(hour, key) WHERE hour IS NOT NULL;

-- Who does what only one process may do at a time, and until when.
CREATE TABLE lease(
  name       TEXT PRIMARY KEY,
  holder     TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
