-- Months (UTC) that are closed: what they came to, signed, and whether their rows may be removed. Times are milliseconds
-- since 1970. Instances of the version before go on while this runs: what they write is not changed.

CREATE TABLE closed_month(
  month       text COLLATE "C" PRIMARY KEY CHECK (length(month) = 7),
  until       bigint NOT NULL UNIQUE,
  transfers   bigint NOT NULL CHECK (transfers >= 0),
  statement   text COLLATE "C" NOT NULL,
  closed_at   bigint NOT NULL,
  released_at bigint
);
CREATE TRIGGER closed_month_is_never_deleted BEFORE DELETE ON closed_month FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a closed month is never deleted');
CREATE TRIGGER closed_month_keeps_its_terms BEFORE UPDATE ON closed_month FOR EACH ROW
  WHEN ((NEW.month, NEW.until, NEW.transfers, NEW.statement, NEW.closed_at)
      IS DISTINCT FROM (OLD.month, OLD.until, OLD.transfers, OLD.statement, OLD.closed_at)
    OR OLD.released_at IS NOT NULL)
  EXECUTE FUNCTION refuse_change('a closed month keeps its terms');
CREATE TRIGGER closed_month_is_never_emptied BEFORE TRUNCATE ON closed_month FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TABLE removed_calls(
  account   bigint NOT NULL REFERENCES account(id),
  allowance text COLLATE "C" NOT NULL,
  debits    bigint NOT NULL CHECK (debits >= 0),
  credits   bigint NOT NULL CHECK (credits BETWEEN 0 AND debits),
  transfers bigint NOT NULL CHECK (transfers > 0),
  PRIMARY KEY (account, allowance)
);
CREATE TRIGGER removed_calls_are_never_deleted BEFORE DELETE ON removed_calls FOR EACH ROW
  EXECUTE FUNCTION refuse_change('what was removed is never forgotten');
CREATE TRIGGER removed_calls_only_grow BEFORE UPDATE ON removed_calls FOR EACH ROW
  WHEN ((NEW.account, NEW.allowance) IS DISTINCT FROM (OLD.account, OLD.allowance)
    OR NEW.debits < OLD.debits OR NEW.credits < OLD.credits OR NEW.transfers <= OLD.transfers)
  EXECUTE FUNCTION refuse_change('what was removed only grows');
CREATE TRIGGER removed_calls_are_never_emptied BEFORE TRUNCATE ON removed_calls FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

-- In the order in which a group of operations comes to them, so that nobody waits for us who has what we want.
LOCK TABLE reservation, transfer, uncharged_call IN ACCESS EXCLUSIVE MODE;

-- A transfer that is deleted would be looked for in every row that may refer to it, without an index. The rules of
-- `ledger check` find a reference that leads nowhere.
ALTER TABLE reservation DROP CONSTRAINT reservation_transfer_fkey;
ALTER TABLE transfer DROP CONSTRAINT transfer_resolves_fkey;

-- Rows of calls may go once a month that was closed after them was released; what brought credits or took them stays.
CREATE FUNCTION keep_until_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM closed_month WHERE released_at IS NOT NULL AND until >
    (to_jsonb(OLD) ->> TG_ARGV[1])::bigint * TG_ARGV[2]::bigint)
  THEN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END IF;
  RETURN OLD;
END $$;
DROP TRIGGER transfer_is_never_deleted ON transfer;
CREATE TRIGGER transfer_is_never_deleted BEFORE DELETE ON transfer FOR EACH ROW
  EXECUTE FUNCTION keep_until_released('a transfer is never deleted', 'at', '1');
CREATE TRIGGER transfer_of_credits_is_never_deleted BEFORE DELETE ON transfer FOR EACH ROW
  WHEN (2 NOT IN (OLD.debit, OLD.credit)) EXECUTE FUNCTION refuse_change('a transfer is never deleted');
DROP TRIGGER reservation_is_never_deleted ON reservation;
CREATE TRIGGER reservation_is_never_deleted BEFORE DELETE ON reservation FOR EACH ROW
  EXECUTE FUNCTION keep_until_released('a reservation is never deleted', 'settled_at', '1');
DROP TRIGGER uncharged_call_is_never_deleted ON uncharged_call;
CREATE TRIGGER uncharged_call_is_never_deleted BEFORE DELETE ON uncharged_call FOR EACH ROW
  EXECUTE FUNCTION keep_until_released('an uncharged call is never deleted', 'hour', '3600000');
