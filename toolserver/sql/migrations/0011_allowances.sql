-- Allowances: tokens that spend the credits of another token, up to caps. Times are milliseconds since 1970.

CREATE TABLE allowance(
  id              TEXT PRIMARY KEY,
  hash            TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),  -- SHA-256 of its token, hex
  ref             TEXT NOT NULL UNIQUE,                            -- names it to our own services, opens nothing
  parent          TEXT NOT NULL REFERENCES token(hash),            -- whose credits it spends
  name            TEXT NOT NULL,
  credits         INTEGER NOT NULL CHECK (credits > 0),            -- caps: in all, and per UTC day
  credits_per_day INTEGER CHECK (credits_per_day > 0),
  expires_at      INTEGER,
  tools           TEXT,                                            -- JSON: name to path; NULL: every tool
  spent           INTEGER NOT NULL CHECK (spent >= 0),             -- reserved and charged, less what was given back
  day             INTEGER NOT NULL,                                -- days since 1970, the day of `spent_today`
  spent_today     INTEGER NOT NULL CHECK (spent_today BETWEEN 0 AND spent),
  created_at      INTEGER NOT NULL,
  last_used_at    INTEGER,
  revoked_at      INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX allowance_of ON allowance(parent, created_at);

CREATE TRIGGER allowance_keeps_its_owner BEFORE UPDATE ON allowance
WHEN (NEW.id, NEW.hash, NEW.ref, NEW.parent, NEW.created_at) IS NOT (OLD.id, OLD.hash, OLD.ref, OLD.parent, OLD.created_at)
  OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS NOT OLD.revoked_at)
BEGIN SELECT RAISE(ABORT, 'an allowance keeps its owner, and stays revoked'); END;
CREATE TRIGGER allowance_is_never_deleted BEFORE DELETE ON allowance
BEGIN SELECT RAISE(ABORT, 'an allowance is never deleted'); END;

ALTER TABLE reservation ADD COLUMN allowance TEXT REFERENCES allowance(id);  -- NULL: of the token itself
ALTER TABLE reservation ADD COLUMN day INTEGER;                              -- on which an allowance reserved it
CREATE INDEX reservation_of_allowance ON reservation(allowance, transfer) WHERE allowance IS NOT NULL;
CREATE TRIGGER reservation_keeps_its_allowance BEFORE UPDATE OF allowance, day ON reservation
WHEN (NEW.allowance, NEW.day) IS NOT (OLD.allowance, OLD.day)
BEGIN SELECT RAISE(ABORT, 'a reservation keeps its allowance'); END;
