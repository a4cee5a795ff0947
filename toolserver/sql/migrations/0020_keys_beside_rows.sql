-- Callers choose their keys at random: only a small index is written in their order, the rows in the order of the calls.
CREATE TABLE keyed_call(
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  request    TEXT NOT NULL,
  call_id    TEXT NOT NULL,
  outcome    BLOB,
  expires_at INTEGER NOT NULL,
  own        BLOB,
  shared     BLOB CHECK (length(shared) = 32),
  PRIMARY KEY (scope, key)
) STRICT;
INSERT INTO keyed_call(scope, key, request, call_id, outcome, expires_at, own, shared)
  SELECT scope, key, request, call_id, outcome, expires_at, own, shared FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE keyed_call RENAME TO idempotency;
CREATE INDEX idempotency_expires_at ON idempotency(expires_at);
