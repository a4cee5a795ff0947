-- Thresholds of a token's owner that were crossed. Times are milliseconds since 1970.

ALTER TABLE owner_limits ADD COLUMN low_since bigint;                    -- since when `balance` is crossed; NULL: it is not
ALTER TABLE owner_limits ADD COLUMN alerted_day bigint;                  -- days since 1970: the last day on which `day` was crossed

-- Crossings about which no notice was planned yet. A row is removed in the transaction that plans the notice.
CREATE TABLE owner_alert(
  account         bigint NOT NULL REFERENCES account(id),
  alert           text COLLATE "C" NOT NULL CHECK (alert IN ('balance', 'day')),
  crossed_at      bigint NOT NULL,
  credits_left    bigint NOT NULL,
  spent_today     bigint NOT NULL,
  credits_per_day bigint,                                                -- the limits as they were
  alert_below     bigint,
  alert_percent   bigint,
  PRIMARY KEY (account, alert)
);
