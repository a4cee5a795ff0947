-- A seal over the rows of every table of money, made with a key that is not in this file: see storage/row_seal.py.

CREATE TABLE row_seal(
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  counter INTEGER NOT NULL,  -- how many transactions were sealed
  nonce   BLOB NOT NULL CHECK (length(nonce) = 16),
  sums    BLOB NOT NULL,     -- 32 bytes a table, masked by key and nonce
  mac     BLOB NOT NULL CHECK (length(mac) = 32)
) STRICT;
