-- An answer that is kept for an Idempotency-Key: what is of this call alone, and the bytes that it has in common with others
-- by their SHA-256. Where `own` is NULL, `outcome` has the whole, as earlier versions kept it.
ALTER TABLE idempotency ADD COLUMN own BLOB;
ALTER TABLE idempotency ADD COLUMN shared BLOB CHECK (length(shared) = 32);

-- Each of those bytes once, compressed, for longer than any key that names them.
CREATE TABLE shared_result(
  sha256     BLOB NOT NULL PRIMARY KEY CHECK (length(sha256) = 32),
  packed     BLOB NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX shared_result_expires_at ON shared_result(expires_at);
