-- Receipts, packed (money/receipts/packing.py). Instances of the version before go on while this runs: what they write is
-- not changed, and they write to `receipt`, which is read too. Times are milliseconds since 1970.

CREATE TABLE receipt_form(
  number bigint PRIMARY KEY,
  terms  text COLLATE "C" NOT NULL
);
CREATE TRIGGER receipt_form_is_never_changed BEFORE UPDATE ON receipt_form FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the form of receipts is never changed');
CREATE TRIGGER receipt_form_is_never_deleted BEFORE DELETE ON receipt_form FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the form of receipts is never changed');
CREATE TRIGGER receipt_form_is_never_emptied BEFORE TRUNCATE ON receipt_form FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TABLE packed_receipt(
  at        bigint NOT NULL,
  form      bigint NOT NULL,  -- no reference to `receipt_form`: every receipt would lock the row of its form
  id        bytea PRIMARY KEY,
  owner     bytea NOT NULL CHECK (length(owner) = 32),
  facts     bytea NOT NULL,
  signature bytea NOT NULL
);
CREATE TRIGGER packed_receipt_is_never_changed BEFORE UPDATE ON packed_receipt FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a receipt is never changed');
CREATE TRIGGER packed_receipt_is_never_emptied BEFORE TRUNCATE ON packed_receipt FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TABLE removed_name(
  name  bytea PRIMARY KEY,
  month bigint NOT NULL
);
CREATE TRIGGER removed_name_is_never_changed BEFORE UPDATE ON removed_name FOR EACH ROW
  WHEN (NEW.name IS DISTINCT FROM OLD.name) EXECUTE FUNCTION refuse_change('what was removed is never forgotten');
CREATE TRIGGER removed_name_is_never_deleted BEFORE DELETE ON removed_name FOR EACH ROW
  EXECUTE FUNCTION refuse_change('what was removed is never forgotten');
CREATE TRIGGER removed_name_is_never_emptied BEFORE TRUNCATE ON removed_name FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');
