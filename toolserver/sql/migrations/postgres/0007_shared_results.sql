-- An answer that is kept for an Idempotency-Key: what is of this call alone, and the bytes that it has in common with others
-- by their SHA-256. Where `own` is NULL, `outcome` has the whole, as earlier versions kept it.
ALTER TABLE idempotency ADD COLUMN own bytea;
ALTER TABLE idempotency ADD COLUMN shared bytea CHECK (length(shared) = 32);

CREATE TABLE shared_result(
  sha256     bytea PRIMARY KEY CHECK (length(sha256) = 32),
  packed     bytea NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX shared_result_expires_at ON shared_result(expires_at);
