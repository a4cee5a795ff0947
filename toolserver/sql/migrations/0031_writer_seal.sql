-- The seals of the writers of this database: sql/row_seal.py. A file has one writer, 0. `row_seal` stays as the version
-- before left it: rows are checked against it once, before they are sealed here. Times are milliseconds since 1970.

CREATE TABLE writer_seal(
  writer  INTEGER PRIMARY KEY,
  commits INTEGER NOT NULL CHECK (commits > 0),             -- how many transactions it sealed
  at      INTEGER NOT NULL,                                 -- when it sealed the last one
  before  BLOB NOT NULL CHECK (length(before) = 32),        -- the head of the transaction before
  nonce   BLOB NOT NULL CHECK (length(nonce) = 16),
  sketch  BLOB NOT NULL,                                    -- encrypted under the key and the nonce
  head    BLOB NOT NULL CHECK (length(head) = 32)           -- authenticates all of these
) STRICT;
