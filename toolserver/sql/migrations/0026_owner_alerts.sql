-- Thresholds of a token's owner that were crossed. Times are milliseconds since 1970.

ALTER TABLE owner_limits ADD COLUMN low_since INTEGER;                   -- since when `balance` is crossed; NULL: it is not
ALTER TABLE owner_limits ADD COLUMN alerted_day INTEGER;                 -- days since 1970: the last day on which `day` was crossed

-- Crossings about which no notice was planned yet. A row is removed in the transaction that plans the notice.
CREATE TABLE owner_alert(
  account         INTEGER NOT NULL REFERENCES account(id),
  alert           TEXT NOT NULL CHECK (alert IN ('balance', 'day')),
  crossed_at      INTEGER NOT NULL,
  credits_left    INTEGER NOT NULL,
  spent_today     INTEGER NOT NULL,
  credits_per_day INTEGER,                                               -- the limits as they were
  alert_below     INTEGER,
  alert_percent   INTEGER,
  PRIMARY KEY (account, alert)
) STRICT, WITHOUT ROWID;
