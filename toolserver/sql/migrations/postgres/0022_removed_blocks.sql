-- The names of removed calls and receipts, 256 in a row (money/ledger/sql_removed_names.py). An instance of the version
-- before goes on while this runs, and removes nothing. `removed_name` keeps names of another shape, and what earlier versions
-- removed until `books prune` has moved it.

CREATE TABLE removed_block(
  first bytea PRIMARY KEY,
  names bytea NOT NULL CHECK (length(names) % 18 = 0 AND substr(names, 1, 16) = first)
);
ALTER TABLE removed_block ALTER COLUMN names SET STORAGE EXTERNAL;  -- names cannot be compressed
CREATE TRIGGER removed_block_is_never_deleted BEFORE DELETE ON removed_block FOR EACH ROW
  EXECUTE FUNCTION refuse_change('what was removed is never forgotten');
CREATE TRIGGER removed_block_is_never_emptied BEFORE TRUNCATE ON removed_block FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');
CREATE FUNCTION keep_removed_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.first <> OLD.first OR (length(NEW.names) < length(OLD.names) AND NOT EXISTS (
    SELECT 1 FROM removed_block WHERE names = substr(OLD.names, length(NEW.names) + 1)
      AND first = substr(OLD.names, length(NEW.names) + 1, 16) AND NEW.names = substr(OLD.names, 1, length(NEW.names))))
  THEN RAISE EXCEPTION 'what was removed is never forgotten' USING ERRCODE = 'integrity_constraint_violation'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER removed_block_only_grows BEFORE UPDATE ON removed_block FOR EACH ROW EXECUTE FUNCTION keep_removed_block();
CREATE TRIGGER note_added_rows AFTER INSERT ON removed_block REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT WHEN (current_setting('toolserver.rows', true) <> '') EXECUTE FUNCTION note_rows();
CREATE TRIGGER note_changed_rows AFTER UPDATE ON removed_block REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT WHEN (current_setting('toolserver.rows', true) <> '') EXECUTE FUNCTION note_rows();
CREATE TRIGGER note_removed_rows AFTER DELETE ON removed_block REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT WHEN (current_setting('toolserver.rows', true) <> '') EXECUTE FUNCTION note_rows();

CREATE FUNCTION keep_removed_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM (SELECT names FROM removed_block WHERE first <= OLD.name ORDER BY first DESC LIMIT 1) AS block
    WHERE length(OLD.name) = 16 AND position(OLD.name IN names) % 18 = 1)
  THEN RAISE EXCEPTION 'what was removed is never forgotten' USING ERRCODE = 'integrity_constraint_violation'; END IF;
  RETURN OLD;
END $$;
DROP TRIGGER removed_name_is_never_deleted ON removed_name;
CREATE TRIGGER removed_name_is_never_deleted BEFORE DELETE ON removed_name FOR EACH ROW EXECUTE FUNCTION keep_removed_name();
