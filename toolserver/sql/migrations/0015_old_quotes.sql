-- Purchases that were offered and, long after they expired, not paid: the same terms in half the space, without the
-- indexes of `purchase`. A memo still claims one; then it goes back to `purchase`, under the id that it had.

CREATE TABLE old_quote(
  memo_hash  BLOB PRIMARY KEY CHECK (length(memo_hash) = 32),
  id         INTEGER NOT NULL,
  address    BLOB NOT NULL,
  hd_index   INTEGER,
  amount     INTEGER NOT NULL,
  credits    INTEGER NOT NULL,
  challenge  TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX purchase_unpaid ON purchase(expires_at) WHERE state = 'quoted';

-- An address that was given out once is still known for ever: a row leaves either table only for the other.
DROP TRIGGER purchase_is_never_deleted;
CREATE TRIGGER purchase_is_never_deleted BEFORE DELETE ON purchase
WHEN OLD.state != 'quoted' OR (OLD.id, OLD.address, OLD.hd_index, OLD.amount, OLD.credits, OLD.challenge, OLD.created_at, OLD.expires_at)
  IS NOT (SELECT id, address, hd_index, amount, credits, challenge, created_at, expires_at FROM old_quote WHERE memo_hash = OLD.memo_hash)
BEGIN SELECT RAISE(ABORT, 'a purchase is never deleted'); END;
CREATE TRIGGER old_quote_is_never_deleted BEFORE DELETE ON old_quote
WHEN NOT EXISTS (SELECT 1 FROM purchase WHERE memo_hash = OLD.memo_hash)
BEGIN SELECT RAISE(ABORT, 'an old quote is never deleted'); END;
CREATE TRIGGER old_quote_keeps_its_terms BEFORE UPDATE ON old_quote
BEGIN SELECT RAISE(ABORT, 'an old quote keeps its terms'); END;
