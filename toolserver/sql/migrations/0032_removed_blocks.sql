-- The names of removed calls and receipts, 256 in a row (money/ledger/sql_removed_names.py): 18 bytes of each instead of 30,
-- and of 97 on a server. `removed_name` keeps names of another shape, and what earlier versions removed until `books prune`
-- has moved it.

CREATE TABLE removed_block(
  first BLOB PRIMARY KEY,  -- its first name; it has all names before the first one of the next block
  names BLOB NOT NULL CHECK (length(names) % 18 = 0 AND substr(names, 1, 16) = first)  -- 16 bytes each, and 2 for the month
) STRICT, WITHOUT ROWID;
CREATE TRIGGER removed_block_is_never_deleted BEFORE DELETE ON removed_block
BEGIN SELECT RAISE(ABORT, 'what was removed is never forgotten'); END;
CREATE TRIGGER removed_block_only_grows BEFORE UPDATE ON removed_block
WHEN NEW.first IS NOT OLD.first OR (length(NEW.names) < length(OLD.names) AND NOT EXISTS (
  SELECT 1 FROM removed_block WHERE names = substr(OLD.names, length(NEW.names) + 1)  -- the other half has the rest
    AND first = substr(OLD.names, length(NEW.names) + 1, 16) AND NEW.names = substr(OLD.names, 1, length(NEW.names))))
BEGIN SELECT RAISE(ABORT, 'what was removed is never forgotten'); END;

DROP TRIGGER removed_name_is_never_deleted;
CREATE TRIGGER removed_name_is_never_deleted BEFORE DELETE ON removed_name
WHEN NOT EXISTS (SELECT 1 FROM (SELECT names FROM removed_block WHERE first <= OLD.name ORDER BY first DESC LIMIT 1) AS block
  WHERE length(OLD.name) = 16 AND instr(names, OLD.name) % 18 = 1)
BEGIN SELECT RAISE(ABORT, 'what was removed is never forgotten'); END;
