-- The token to which a quote adds credits; a quote without a row buys a new token.

CREATE TABLE quote_topup(
  memo_hash bytea PRIMARY KEY CHECK (length(memo_hash) = 32),
  token     text COLLATE "C" NOT NULL REFERENCES token(hash)
);
CREATE TRIGGER quote_topup_is_never_changed BEFORE UPDATE ON quote_topup FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a quote keeps its token');
CREATE TRIGGER quote_topup_is_never_deleted BEFORE DELETE ON quote_topup FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a quote keeps its token');
