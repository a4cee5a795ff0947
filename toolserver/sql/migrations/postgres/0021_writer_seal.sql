-- The seals of the writers of this database (sql/row_seal.py), and what tells a writer which rows its transaction changed.
-- An instance of the version before is told nothing, and writes as before. Times are milliseconds since 1970.

CREATE TABLE writer_seal(
  writer  bigint PRIMARY KEY,
  commits bigint NOT NULL CHECK (commits > 0),
  at      bigint NOT NULL,
  before  bytea NOT NULL CHECK (length(before) = 32),
  nonce   bytea NOT NULL CHECK (length(nonce) = 16),
  sketch  bytea NOT NULL,
  head    bytea NOT NULL CHECK (length(head) = 32)
);
ALTER TABLE writer_seal ALTER COLUMN sketch SET STORAGE PLAIN;  -- noise: it would be moved to another table, in pieces

-- A transaction that seals what it changes begins with a comma in `toolserver.rows`. It is rolled back with a savepoint.
CREATE FUNCTION note_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  removed json := '[]';
  added json := '[]';
BEGIN
  IF TG_OP <> 'INSERT' THEN SELECT coalesce(json_agg(r::text), removed) INTO removed FROM old_rows r; END IF;
  IF TG_OP <> 'DELETE' THEN SELECT coalesce(json_agg(r::text), added) INTO added FROM new_rows r; END IF;
  PERFORM set_config('toolserver.rows',
    current_setting('toolserver.rows') || json_build_array(TG_TABLE_NAME, removed, added)::text || ',', true);
  RETURN NULL;
END $$;

DO $$
DECLARE
  money text;
BEGIN
  FOREACH money IN ARRAY ARRAY[
    'account', 'token', 'transfer', 'reservation', 'allowance', 'journal', 'receipt', 'no_charge', 'log_node',
    'log_checkpoint', 'no_charge_day', 'purchase', 'tx_credit', 'tx_reversal', 'unapplied_payment', 'payment_review',
    'x402_payment', 'x402_confirmation', 'sweep', 'old_quote', 'refund', 'reissue', 'uncharged_call', 'closed_month',
    'removed_calls', 'owner_limits', 'quote_limit', 'quote_topup', 'receipt_form', 'packed_receipt', 'removed_name',
    'chain_transfer', 'chain_change', 'chain_dust', 'chain_opening']
  LOOP
    EXECUTE format('CREATE TRIGGER note_added_rows AFTER INSERT ON %I REFERENCING NEW TABLE AS new_rows
      FOR EACH STATEMENT WHEN (current_setting(''toolserver.rows'', true) <> '''') EXECUTE FUNCTION note_rows()', money);
    EXECUTE format('CREATE TRIGGER note_changed_rows AFTER UPDATE ON %I REFERENCING OLD TABLE AS old_rows
      NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (current_setting(''toolserver.rows'', true) <> '''')
      EXECUTE FUNCTION note_rows()', money);
    EXECUTE format('CREATE TRIGGER note_removed_rows AFTER DELETE ON %I REFERENCING OLD TABLE AS old_rows
      FOR EACH STATEMENT WHEN (current_setting(''toolserver.rows'', true) <> '''') EXECUTE FUNCTION note_rows()', money);
  END LOOP;
END $$;
