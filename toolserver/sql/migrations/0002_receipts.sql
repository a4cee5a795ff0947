-- Receipts, and the public account of what was not charged. Times are milliseconds since 1970.

CREATE TABLE receipt(
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  owner         TEXT NOT NULL CHECK (length(owner) = 64),  -- SHA-256 of the token that paid, hex
  core          BLOB NOT NULL,                             -- what is signed, as RFC 8785 writes it
  key           TEXT NOT NULL,                             -- which key signed
  signature     BLOB NOT NULL,                             -- over the JWS signing input
  at            INTEGER NOT NULL
) STRICT;
CREATE TRIGGER receipt_is_never_changed BEFORE UPDATE ON receipt
BEGIN SELECT RAISE(ABORT, 'a receipt is never changed'); END;

-- Leaves of the log and the nodes above them: `hash` covers the leaves idx * 2^level up to (idx + 1) * 2^level.
CREATE TABLE no_charge(
  seq   INTEGER PRIMARY KEY CHECK (seq >= 0),
  day   TEXT NOT NULL,
  entry BLOB NOT NULL,
  at    INTEGER NOT NULL
) STRICT;
CREATE INDEX no_charge_by_day ON no_charge(day);
CREATE TRIGGER no_charge_is_never_changed BEFORE UPDATE ON no_charge
BEGIN SELECT RAISE(ABORT, 'the log is never changed'); END;
CREATE TRIGGER no_charge_is_never_deleted BEFORE DELETE ON no_charge
BEGIN SELECT RAISE(ABORT, 'the log is never changed'); END;

CREATE TABLE log_node(
  level INTEGER NOT NULL,
  idx   INTEGER NOT NULL,
  hash  BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (level, idx)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER log_node_is_never_changed BEFORE UPDATE ON log_node
BEGIN SELECT RAISE(ABORT, 'the log is never changed'); END;
CREATE TRIGGER log_node_is_never_deleted BEFORE DELETE ON log_node
BEGIN SELECT RAISE(ABORT, 'the log is never changed'); END;

-- The last state of the log that was signed. One that does not lead on from it is never signed.
CREATE TABLE log_checkpoint(
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  size INTEGER NOT NULL,
  root BLOB NOT NULL,
  note TEXT NOT NULL,
  at   INTEGER NOT NULL
) STRICT;

-- What is in the log, summed by day.
CREATE TABLE no_charge_day(
  day      TEXT NOT NULL,
  reason   TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  calls    INTEGER NOT NULL,
  credits  INTEGER NOT NULL,
  PRIMARY KEY (day, reason, endpoint)
) STRICT, WITHOUT ROWID;
