-- Receipts, packed (money/receipts/packing.py): a fifth of the space of `receipt`, which keeps those of earlier versions
-- until their month is removed. Times are milliseconds since 1970.

-- What many receipts have in common, under a number that follows from it: the signer, and members of the signed core.
CREATE TABLE receipt_form(
  number INTEGER PRIMARY KEY,
  terms  TEXT NOT NULL
) STRICT;
CREATE TRIGGER receipt_form_is_never_changed BEFORE UPDATE ON receipt_form
BEGIN SELECT RAISE(ABORT, 'the form of receipts is never changed'); END;
CREATE TRIGGER receipt_form_is_never_deleted BEFORE DELETE ON receipt_form
BEGIN SELECT RAISE(ABORT, 'the form of receipts is never changed'); END;

-- The columns are in an order in which PostgreSQL leaves no gaps between them.
CREATE TABLE packed_receipt(
  at        INTEGER NOT NULL,
  form      INTEGER NOT NULL,                        -- of `receipt_form`
  id        BLOB PRIMARY KEY,                        -- 16 bytes, the first 6 of which are the time of the call in ms
  owner     BLOB NOT NULL CHECK (length(owner) = 32),  -- SHA-256 of the token that paid
  facts     BLOB NOT NULL,                           -- what only this receipt says, or its whole core
  signature BLOB NOT NULL                            -- over the JWS signing input
) STRICT, WITHOUT ROWID;
CREATE TRIGGER packed_receipt_is_never_changed BEFORE UPDATE ON packed_receipt
BEGIN SELECT RAISE(ABORT, 'a receipt is never changed'); END;

-- The names of calls and receipts whose rows were removed, for ever: so no call_id is charged twice, and a receipt is known
-- to be in an archive.
CREATE TABLE removed_name(
  name  BLOB PRIMARY KEY,
  month INTEGER NOT NULL  -- whose archive has it: 202701. A receipt may be in a later one than its call
) STRICT, WITHOUT ROWID;
CREATE TRIGGER removed_name_is_never_changed BEFORE UPDATE ON removed_name
WHEN NEW.name IS NOT OLD.name
BEGIN SELECT RAISE(ABORT, 'what was removed is never forgotten'); END;
CREATE TRIGGER removed_name_is_never_deleted BEFORE DELETE ON removed_name
BEGIN SELECT RAISE(ABORT, 'what was removed is never forgotten'); END;
