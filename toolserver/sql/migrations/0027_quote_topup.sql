-- The token to which a quote adds credits; a quote without a row buys a new token.

CREATE TABLE quote_topup(
  memo_hash BLOB PRIMARY KEY CHECK (length(memo_hash) = 32),
  token     TEXT NOT NULL REFERENCES token(hash)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER quote_topup_is_never_changed BEFORE UPDATE ON quote_topup
BEGIN SELECT RAISE(ABORT, 'a quote keeps its token'); END;
CREATE TRIGGER quote_topup_is_never_deleted BEFORE DELETE ON quote_topup
BEGIN SELECT RAISE(ABORT, 'a quote keeps its token'); END;
