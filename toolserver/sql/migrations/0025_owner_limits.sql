-- Limits that the owner of a token sets on it; they bind its allowances too. Times are milliseconds since 1970.

CREATE TABLE owner_limits(
  account         INTEGER PRIMARY KEY REFERENCES account(id),
  credits_per_day INTEGER CHECK (credits_per_day > 0),                   -- NULL: no cap
  frozen_at       INTEGER,                                               -- NULL: it pays
  alert_below     INTEGER CHECK (alert_below > 0),                       -- credits left; NULL: no alert
  alert_percent   INTEGER CHECK (alert_percent BETWEEN 1 AND 100),       -- of the cap per day; NULL: no alert
  day             INTEGER NOT NULL,                                      -- days since 1970, the day of `spent_today`
  spent_today     INTEGER NOT NULL CHECK (spent_today >= 0),             -- reserved and charged, less what was given back
  changed_at      INTEGER NOT NULL
) STRICT;
CREATE TRIGGER owner_limits_are_never_deleted BEFORE DELETE ON owner_limits
BEGIN SELECT RAISE(ABORT, 'the limits of a token are never deleted'); END;

-- The cap per day that the buyer asked for with a quote: it is set on the token that the payment buys.
CREATE TABLE quote_limit(
  memo_hash       BLOB PRIMARY KEY CHECK (length(memo_hash) = 32),
  credits_per_day INTEGER NOT NULL CHECK (credits_per_day > 0)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER quote_limit_is_never_changed BEFORE UPDATE ON quote_limit
BEGIN SELECT RAISE(ABORT, 'a quote keeps its limit'); END;
CREATE TRIGGER quote_limit_is_never_deleted BEFORE DELETE ON quote_limit
BEGIN SELECT RAISE(ABORT, 'a quote keeps its limit'); END;
