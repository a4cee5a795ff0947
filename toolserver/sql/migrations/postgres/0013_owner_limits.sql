-- Limits that the owner of a token sets on it; they bind its allowances too. Times are milliseconds since 1970.

CREATE TABLE owner_limits(
  account         bigint PRIMARY KEY REFERENCES account(id),
  credits_per_day bigint CHECK (credits_per_day > 0),                   -- NULL: no cap
  frozen_at       bigint,                                               -- NULL: it pays
  alert_below     bigint CHECK (alert_below > 0),                       -- credits left; NULL: no alert
  alert_percent   bigint CHECK (alert_percent BETWEEN 1 AND 100),       -- of the cap per day; NULL: no alert
  day             bigint NOT NULL,                                      -- days since 1970, the day of `spent_today`
  spent_today     bigint NOT NULL CHECK (spent_today >= 0),             -- reserved and charged, less what was given back
  changed_at      bigint NOT NULL
);
CREATE TRIGGER owner_limits_are_never_deleted BEFORE DELETE ON owner_limits FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the limits of a token are never deleted');

-- The cap per day that the buyer asked for with a quote: it is set on the token that the payment buys.
CREATE TABLE quote_limit(
  memo_hash       bytea PRIMARY KEY CHECK (length(memo_hash) = 32),
  credits_per_day bigint NOT NULL CHECK (credits_per_day > 0)
);
CREATE TRIGGER quote_limit_is_never_changed BEFORE UPDATE ON quote_limit FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a quote keeps its limit');
CREATE TRIGGER quote_limit_is_never_deleted BEFORE DELETE ON quote_limit FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a quote keeps its limit');
