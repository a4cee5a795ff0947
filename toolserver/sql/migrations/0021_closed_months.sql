-- Months (UTC) that are closed: what they came to, signed, and whether their rows may be removed. Times are milliseconds
-- since 1970.

CREATE TABLE closed_month(
  month       TEXT PRIMARY KEY CHECK (length(month) = 7),  -- such as 2027-01
  until       INTEGER NOT NULL UNIQUE,                     -- its end
  transfers   INTEGER NOT NULL CHECK (transfers >= 0),     -- how many it had
  statement   TEXT NOT NULL,                               -- what it came to, signed: receipts/month_statement.py
  closed_at   INTEGER NOT NULL,
  released_at INTEGER                                      -- its archive was read back and compared with its rows
) STRICT, WITHOUT ROWID;
CREATE TRIGGER closed_month_is_never_deleted BEFORE DELETE ON closed_month
BEGIN SELECT RAISE(ABORT, 'a closed month is never deleted'); END;
CREATE TRIGGER closed_month_keeps_its_terms BEFORE UPDATE ON closed_month
WHEN (NEW.month, NEW.until, NEW.transfers, NEW.statement, NEW.closed_at)
    IS NOT (OLD.month, OLD.until, OLD.transfers, OLD.statement, OLD.closed_at)
  OR OLD.released_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a closed month keeps its terms'); END;

-- What the calls came to whose rows were removed, so that an account still is the sum of everything.
CREATE TABLE removed_calls(
  account   INTEGER NOT NULL REFERENCES account(id),
  allowance TEXT NOT NULL,                                 -- that made them; '': the token itself
  debits    INTEGER NOT NULL CHECK (debits >= 0),          -- charged
  credits   INTEGER NOT NULL CHECK (credits BETWEEN 0 AND debits),  -- charged and given back
  transfers INTEGER NOT NULL CHECK (transfers > 0),        -- how many rows of `transfer` they had
  PRIMARY KEY (account, allowance)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER removed_calls_are_never_deleted BEFORE DELETE ON removed_calls
BEGIN SELECT RAISE(ABORT, 'what was removed is never forgotten'); END;
CREATE TRIGGER removed_calls_only_grow BEFORE UPDATE ON removed_calls
WHEN (NEW.account, NEW.allowance) IS NOT (OLD.account, OLD.allowance)
  OR NEW.debits < OLD.debits OR NEW.credits < OLD.credits OR NEW.transfers <= OLD.transfers
BEGIN SELECT RAISE(ABORT, 'what was removed only grows'); END;

-- Rows of calls may go once a month that was closed after them was released; what brought credits or took them stays.
DROP TRIGGER transfer_is_never_deleted;
CREATE TRIGGER transfer_is_never_deleted BEFORE DELETE ON transfer
WHEN 2 NOT IN (OLD.debit, OLD.credit)
  OR NOT EXISTS (SELECT 1 FROM closed_month WHERE released_at IS NOT NULL AND until > OLD.at)
BEGIN SELECT RAISE(ABORT, 'a transfer is never deleted'); END;
DROP TRIGGER reservation_is_never_deleted;
CREATE TRIGGER reservation_is_never_deleted BEFORE DELETE ON reservation
WHEN OLD.settled_at IS NULL
  OR NOT EXISTS (SELECT 1 FROM closed_month WHERE released_at IS NOT NULL AND until > OLD.settled_at)
BEGIN SELECT RAISE(ABORT, 'a reservation is never deleted'); END;
DROP TRIGGER uncharged_call_is_never_deleted;
CREATE TRIGGER uncharged_call_is_never_deleted BEFORE DELETE ON uncharged_call
WHEN NOT EXISTS (SELECT 1 FROM closed_month WHERE released_at IS NOT NULL AND until > OLD.hour * 3600000)
BEGIN SELECT RAISE(ABORT, 'an uncharged call is never deleted'); END;
