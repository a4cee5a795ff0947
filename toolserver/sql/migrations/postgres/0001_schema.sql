-- Everything that is kept, as the numbered scripts of SQLite leave it: the same tables with the same columns in the same
-- order (tests/sql/test_postgres_migrate.py). Text is compared byte by byte, as there. Times are milliseconds since
-- 1970. What a column means is said in the scripts of SQLite.

CREATE TABLE account(
  id      bigint PRIMARY KEY,
  kind    text COLLATE "C" NOT NULL CHECK (kind IN ('token', 'issued', 'revenue', 'suspense')),
  credits bigint NOT NULL DEFAULT 0,  -- posted in favour of the account
  debits  bigint NOT NULL DEFAULT 0,  -- posted against it
  pending bigint NOT NULL DEFAULT 0,  -- set aside, not yet posted
  CHECK (debits >= 0 AND pending >= 0 AND debits + pending <= credits)
);

CREATE TABLE token(
  hash          text COLLATE "C" PRIMARY KEY CHECK (length(hash) = 64),  -- SHA-256, hex; the first 16 digits are the fingerprint
  account       bigint NOT NULL UNIQUE REFERENCES account(id),
  ref           text COLLATE "C" NOT NULL UNIQUE,  -- names the account to our own services, opens nothing
  issued_at     bigint NOT NULL,
  revoked_at    bigint,
  revoke_reason text COLLATE "C",
  successor text COLLATE "C" CHECK (length(successor) = 64),
  CHECK ((revoked_at IS NULL) = (revoke_reason IS NULL))
);
CREATE UNIQUE INDEX token_successor ON token(successor) WHERE successor IS NOT NULL;

CREATE TABLE allowance(
  id              text COLLATE "C" PRIMARY KEY,
  hash            text COLLATE "C" NOT NULL UNIQUE CHECK (length(hash) = 64),  -- SHA-256 of its token, hex
  ref             text COLLATE "C" NOT NULL UNIQUE,  -- names it to our own services, opens nothing
  parent          text COLLATE "C" NOT NULL REFERENCES token(hash),  -- whose credits it spends
  name            text COLLATE "C" NOT NULL,
  credits         bigint NOT NULL CHECK (credits > 0),            -- caps: in all, and per UTC day
  credits_per_day bigint CHECK (credits_per_day > 0),
  expires_at      bigint,
  tools           text COLLATE "C",  -- JSON: name to path; NULL: every tool
  spent           bigint NOT NULL CHECK (spent >= 0),             -- reserved and charged, less what was given back
  day             bigint NOT NULL,                                -- days since 1970, the day of `spent_today`
  spent_today     bigint NOT NULL CHECK (spent_today BETWEEN 0 AND spent),
  created_at      bigint NOT NULL,
  last_used_at    bigint,
  revoked_at      bigint
);
CREATE INDEX allowance_of ON allowance(parent, created_at);

CREATE TABLE transfer(
  seq      bigint PRIMARY KEY,
  kind     text COLLATE "C" NOT NULL CHECK (kind IN ('posted', 'pending', 'post', 'void', 'reverse')),
  debit    bigint NOT NULL,  -- no reference to `account`: every transfer would lock the rows of our own accounts
  credit   bigint NOT NULL,
  amount   bigint NOT NULL CHECK (amount > 0),
  resolves bigint REFERENCES transfer(seq),  -- the transfer a post, void or reverse answers
  cause    text COLLATE "C",  -- what was paid for these credits, once and never again
  at       bigint NOT NULL,
  CHECK (debit <> credit),
  CHECK ((kind IN ('post', 'void', 'reverse')) = (resolves IS NOT NULL))
);
CREATE UNIQUE INDEX transfer_settled_once ON transfer(resolves) WHERE kind IN ('post', 'void');
CREATE UNIQUE INDEX transfer_reversed_once ON transfer(resolves) WHERE kind = 'reverse';
CREATE UNIQUE INDEX transfer_paid_once ON transfer(cause) WHERE cause IS NOT NULL;
CREATE INDEX transfer_to_buyer ON transfer(credit, seq) WHERE credit > 3;
CREATE INDEX transfer_taken_back ON transfer(debit, seq) WHERE credit = 1;

CREATE TABLE reservation(
  call_id    text COLLATE "C" PRIMARY KEY,
  account    bigint NOT NULL REFERENCES account(id),
  credits    bigint NOT NULL CHECK (credits > 0),
  state      text COLLATE "C" NOT NULL CHECK (state IN ('open', 'posted', 'voided', 'reversed')),
  reason     text COLLATE "C",  -- why nothing was charged
  endpoint   text COLLATE "C" NOT NULL,
  service    text COLLATE "C" NOT NULL,  -- which service called; '' is this one
  transfer   bigint NOT NULL REFERENCES transfer(seq),
  expires_at bigint NOT NULL,
  settled_at bigint,
  allowance text COLLATE "C" REFERENCES allowance(id),
  day bigint,
  CHECK ((state = 'open') = (settled_at IS NULL)),
  CHECK ((state IN ('voided', 'reversed')) = (reason IS NOT NULL))
);
CREATE INDEX reservation_open ON reservation(expires_at) WHERE state = 'open';
CREATE INDEX reservation_of_account ON reservation(account, transfer);
CREATE INDEX reservation_of_allowance ON reservation(allowance, transfer) WHERE allowance IS NOT NULL;

CREATE TABLE idempotency(
  scope      text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  request    text COLLATE "C" NOT NULL,
  call_id    text COLLATE "C" NOT NULL,
  outcome    bytea,
  expires_at bigint NOT NULL,
  PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_expires_at ON idempotency(expires_at);

CREATE TABLE journal(
  call_id text COLLATE "C" PRIMARY KEY,
  state   text COLLATE "C" NOT NULL CHECK (state IN ('reserving', 'committing', 'committed', 'releasing')),
  reason  text COLLATE "C",
  next_at bigint NOT NULL,
  tries   bigint NOT NULL DEFAULT 0,
  CHECK ((state = 'releasing') = (reason IS NOT NULL))
);
CREATE INDEX journal_due ON journal(next_at) WHERE state = 'releasing';

CREATE TABLE receipt(
  seq           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  id            text COLLATE "C" NOT NULL UNIQUE,
  owner         text COLLATE "C" NOT NULL CHECK (length(owner) = 64),  -- SHA-256 of the token that paid, hex
  core          bytea NOT NULL,                             -- what is signed, as RFC 8785 writes it
  key           text COLLATE "C" NOT NULL,  -- which key signed
  signature     bytea NOT NULL,                             -- over the JWS signing input
  at            bigint NOT NULL
);

CREATE TABLE no_charge(
  seq   bigint PRIMARY KEY CHECK (seq >= 0),
  day   text COLLATE "C" NOT NULL,
  entry bytea NOT NULL,
  at    bigint NOT NULL
);
CREATE INDEX no_charge_by_day ON no_charge(day);

CREATE TABLE log_node(
  level bigint NOT NULL,
  idx   bigint NOT NULL,
  hash  bytea NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (level, idx)
);

CREATE TABLE log_checkpoint(
  one  bigint PRIMARY KEY CHECK (one = 1),
  size bigint NOT NULL,
  root bytea NOT NULL,
  note text COLLATE "C" NOT NULL,
  at   bigint NOT NULL
);

CREATE TABLE no_charge_day(
  day      text COLLATE "C" NOT NULL,
  reason   text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  calls    bigint NOT NULL,
  credits  bigint NOT NULL,
  PRIMARY KEY (day, reason, endpoint)
);

CREATE TABLE purchase(
  id         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  memo_hash  bytea NOT NULL UNIQUE CHECK (length(memo_hash) = 32),  -- SHA-256; the memo itself is nowhere
  address    bytea NOT NULL CHECK (length(address) = 20),
  hd_index   bigint UNIQUE CHECK (hd_index >= 0),                 -- NULL: the address is shared by purchases
  amount     bigint NOT NULL CHECK (amount > 0),
  credits    bigint NOT NULL CHECK (credits > 0),
  challenge  text COLLATE "C",  -- RFC 7636 S256; NULL: none was given
  state      text COLLATE "C" NOT NULL CHECK (state IN ('quoted', 'credited', 'reorged')),
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE UNIQUE INDEX purchase_address_once ON purchase(address) WHERE hd_index IS NOT NULL;
CREATE INDEX purchase_unpaid ON purchase(expires_at) WHERE state = 'quoted';

CREATE TABLE old_quote(
  memo_hash  bytea PRIMARY KEY CHECK (length(memo_hash) = 32),
  id         bigint NOT NULL,
  address    bytea NOT NULL,
  hd_index   bigint,
  amount     bigint NOT NULL,
  credits    bigint NOT NULL,
  challenge  text COLLATE "C",
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);

CREATE TABLE tx_credit(
  chain_id      bigint NOT NULL,
  tx_hash       bytea NOT NULL CHECK (length(tx_hash) = 32),
  purchase      bigint NOT NULL UNIQUE REFERENCES purchase(id),
  token         text COLLATE "C" NOT NULL REFERENCES token(hash),
  block_number  bigint NOT NULL,
  block_hash    bytea NOT NULL CHECK (length(block_hash) = 32),
  block_time    bigint NOT NULL,
  amount        bigint NOT NULL CHECK (amount > 0),
  credits       bigint NOT NULL CHECK (credits > 0),
  logs          text COLLATE "C" NOT NULL,  -- which of the transaction's logs were counted
  finality      text COLLATE "C" NOT NULL CHECK (finality IN ('blocks', 'safe', 'finalized')),
  late          bigint NOT NULL CHECK (late IN (0, 1)),
  memo_public   bigint NOT NULL CHECK (memo_public IN (0, 1)),
  credited_at   bigint NOT NULL,
  sealed        bytea,                           -- the token under a key made of the memo, until it is used
  sealed_until  bigint,
  final_at      bigint,                        -- NULL: a reorganisation of the chain could still undo it
  missing_since bigint,
  agreed_at bigint,
  disputed_since bigint,
  PRIMARY KEY (chain_id, tx_hash),
  CHECK ((sealed IS NULL) = (sealed_until IS NULL))
);
CREATE INDEX tx_credit_watched ON tx_credit(credited_at) WHERE final_at IS NULL;
CREATE INDEX tx_credit_sealed ON tx_credit(token) WHERE sealed IS NOT NULL;
CREATE INDEX tx_credit_credited_at ON tx_credit(credited_at);
CREATE INDEX tx_credit_unagreed ON tx_credit(credited_at) WHERE agreed_at IS NULL;

CREATE TABLE tx_reversal(
  id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  chain_id     bigint NOT NULL,
  tx_hash      bytea NOT NULL,
  purchase     bigint NOT NULL REFERENCES purchase(id),
  token        text COLLATE "C" NOT NULL REFERENCES token(hash),
  block_number bigint NOT NULL,
  block_hash   bytea NOT NULL,
  amount       bigint NOT NULL,
  credits      bigint NOT NULL,
  taken_back   bigint NOT NULL,
  lost         bigint NOT NULL CHECK (lost = credits - taken_back AND lost >= 0),
  at           bigint NOT NULL
);
CREATE INDEX tx_reversal_of ON tx_reversal(purchase);

CREATE TABLE unapplied_payment(
  chain_id bigint NOT NULL,
  tx_hash  bytea NOT NULL CHECK (length(tx_hash) = 32),
  purchase bigint NOT NULL REFERENCES purchase(id),
  amount   bigint NOT NULL CHECK (amount > 0),
  reason   text COLLATE "C" NOT NULL CHECK (reason IN ('second_transfer', 'transaction_used', 'below_minimum', 'late')),
  seen_at  bigint NOT NULL,
  PRIMARY KEY (chain_id, tx_hash, purchase)
);

CREATE TABLE payment_review(
  tx_hash     bytea PRIMARY KEY CHECK (length(tx_hash) = 32),
  purchase    bigint NOT NULL REFERENCES purchase(id),
  amount      bigint NOT NULL CHECK (amount > 0),
  reason      text COLLATE "C" NOT NULL,
  at          bigint NOT NULL,
  approved_at bigint
);

CREATE TABLE refund(
  id         text COLLATE "C" PRIMARY KEY,  -- also what the nonce on the chain is made of
  token      text COLLATE "C" NOT NULL REFERENCES token(hash),
  payee      bytea NOT NULL CHECK (length(payee) = 20),
  credits    bigint NOT NULL CHECK (credits > 0),
  amount     bigint NOT NULL CHECK (amount > 0),
  reason     text COLLATE "C" NOT NULL,
  state      text COLLATE "C" NOT NULL CHECK (state IN ('asked', 'booked', 'sent', 'paid', 'cancelled')),
  asked_at   bigint NOT NULL,
  expires_at bigint NOT NULL,                                    -- until when the proof may come
  proof      text COLLATE "C",  -- how the buyer was known: 'payer' or 'token'
  payer      bytea CHECK (length(payer) = 20),                     -- the account of ours that pays
  booked_at  bigint,                                             -- the credits left the token
  planned_at bigint,                                             -- an authorisation was written out to be signed
  tx_hash    bytea CHECK (length(tx_hash) = 32),
  ended_at   bigint,                                             -- paid, or cancelled
  CHECK ((state IN ('asked', 'cancelled')) OR booked_at IS NOT NULL),
  CHECK ((booked_at IS NULL) = (payer IS NULL) AND (booked_at IS NULL) = (proof IS NULL)),
  CHECK ((state IN ('paid', 'cancelled')) = (ended_at IS NOT NULL)),
  CHECK (state NOT IN ('sent', 'paid') OR tx_hash IS NOT NULL)
);
CREATE INDEX refund_of ON refund(token);

CREATE TABLE reissue(
  id         text COLLATE "C" PRIMARY KEY,
  token      text COLLATE "C" NOT NULL REFERENCES token(hash),
  payer      bytea NOT NULL CHECK (length(payer) = 20),            -- the one account that paid for all of its credits
  state      text COLLATE "C" NOT NULL CHECK (state IN ('asked', 'waiting', 'done', 'cancelled')),
  asked_at   bigint NOT NULL,
  expires_at bigint NOT NULL,                                    -- until when the signature may come
  proved_at  bigint,
  due_at     bigint,                                             -- from when on the token may be replaced
  ended_at   bigint,
  CHECK ((proved_at IS NULL) = (due_at IS NULL)),
  CHECK (state IN ('asked', 'cancelled') OR due_at IS NOT NULL),
  CHECK ((state IN ('done', 'cancelled')) = (ended_at IS NOT NULL))
);
CREATE UNIQUE INDEX reissue_waiting ON reissue(token) WHERE state = 'waiting';

CREATE TABLE sweep(
  payer    bytea NOT NULL CHECK (length(payer) = 20),   -- the deposit address
  nonce    bytea NOT NULL CHECK (length(nonce) = 32),   -- of its authorisation: it is spent once
  payee    bytea NOT NULL CHECK (length(payee) = 20),
  amount   bigint NOT NULL CHECK (amount > 0),
  tx_hash  bytea CHECK (length(tx_hash) = 32),          -- NULL: it was used by a transaction that we did not send
  begun_at bigint NOT NULL,
  done_at  bigint,                                    -- the chain has it
  PRIMARY KEY (payer, nonce)
);

CREATE TABLE x402_payment(
  payload      bytea PRIMARY KEY CHECK (length(payload) = 32),   -- SHA-256 of the authorisation and its signature
  authorizer   bytea NOT NULL CHECK (length(authorizer) = 20),
  nonce        bytea NOT NULL CHECK (length(nonce) = 32),
  amount       bigint NOT NULL CHECK (amount > 0),
  request      text COLLATE "C" NOT NULL,  -- what it pays for: one call, or a top-up
  state        text COLLATE "C" NOT NULL CHECK (state IN ('settling', 'settled')),
  tx_hash      bytea CHECK (length(tx_hash) = 32),               -- while settling: as far as anybody has told us
  valid_before bigint NOT NULL,
  claim        bytea CHECK (length(claim) = 32),                 -- SHA-256 of the key by which its sender may ask again
  token        text COLLATE "C" REFERENCES token(hash),  -- what a top-up was credited to
  credits      bigint CHECK (credits > 0),
  sealed       bytea,                                            -- the new token under that key, until it is used
  sealed_until bigint,
  begun_at     bigint NOT NULL,                                -- written before the payment is handed on
  settled_at   bigint,
  begun_block bigint CHECK (begun_block >= 0),
  answered_at bigint,
  UNIQUE (authorizer, nonce),
  CHECK ((state = 'settled') = (settled_at IS NOT NULL)),
  CHECK (state = 'settling' OR tx_hash IS NOT NULL),
  CHECK ((token IS NULL) = (credits IS NULL)),
  CHECK ((sealed IS NULL) = (sealed_until IS NULL))
);
CREATE INDEX x402_payment_open ON x402_payment(begun_at) WHERE state = 'settling';
CREATE INDEX x402_payment_sealed ON x402_payment(sealed_until) WHERE sealed IS NOT NULL;
CREATE INDEX x402_payment_owed ON x402_payment(settled_at)
WHERE state = 'settled' AND token IS NULL AND answered_at IS NULL;
CREATE INDEX x402_payment_begun_at ON x402_payment(begun_at);

CREATE TABLE x402_confirmation(
  payload        bytea PRIMARY KEY REFERENCES x402_payment(payload),
  tx_hash        bytea CHECK (length(tx_hash) = 32),  -- NULL: the one of the payment; else it moved to another
  block_number   bigint,
  block_hash     bytea,
  agreed_at      bigint,
  disputed_since bigint,
  missing_since  bigint,
  final_at       bigint,                            -- NULL: a reorganisation of the chain could still undo it
  undone_at      bigint,
  taken_back     bigint,
  lost           bigint CHECK (lost >= 0),
  CHECK ((undone_at IS NULL) = (lost IS NULL))
);
CREATE INDEX x402_confirmation_watched ON x402_confirmation(payload) WHERE final_at IS NULL AND undone_at IS NULL;
CREATE INDEX x402_confirmation_case ON x402_confirmation(payload) WHERE undone_at IS NOT NULL OR disputed_since IS NOT NULL;

CREATE TABLE webhook_subscription(
  id                   text COLLATE "C" PRIMARY KEY,
  owner                text COLLATE "C" NOT NULL CHECK (length(owner) = 64),  -- SHA-256 of the token, hex
  account              text COLLATE "C" NOT NULL,  -- names the token's account to the ledger
  endpoint             text COLLATE "C" NOT NULL,
  url                  text COLLATE "C" NOT NULL,
  host                 text COLLATE "C" NOT NULL,
  params               bytea NOT NULL,                             -- JSON
  sealed               bytea NOT NULL,                             -- secrets and custom headers, encrypted
  created_at           bigint NOT NULL,
  due_at               bigint NOT NULL,
  description          text COLLATE "C" NOT NULL,
  condition            bytea,                                      -- JSON
  condition_state      bytea,                                      -- JSON
  state                text COLLATE "C" NOT NULL CHECK (state IN ('active', 'paused', 'cancelled')),
  pause_reason         text COLLATE "C",
  paused_at            bigint,
  last_delivered_at    bigint,
  last_status          bigint,
  last_error           text COLLATE "C",
  consecutive_failures bigint NOT NULL,
  failing_since        bigint,
  delivered_count      bigint NOT NULL,
  failed_count         bigint NOT NULL,
  slow                 bigint NOT NULL,
  payer text COLLATE "C" NOT NULL DEFAULT '',
  CHECK ((state = 'paused') = (pause_reason IS NOT NULL))
);
CREATE INDEX webhook_subscription_owner ON webhook_subscription(owner);
CREATE INDEX webhook_subscription_failing ON webhook_subscription(failing_since)
  WHERE failing_since IS NOT NULL AND state <> 'cancelled';
CREATE INDEX webhook_subscription_payer ON webhook_subscription(payer);
CREATE INDEX webhook_subscription_ended ON webhook_subscription(paused_at) WHERE state = 'cancelled';
CREATE INDEX webhook_subscription_due ON webhook_subscription((consecutive_failures > 0 OR slow > 0), due_at)
  WHERE state = 'active';

CREATE TABLE webhook_fire(
  id           text COLLATE "C" PRIMARY KEY,  -- also the id of the paid call
  subscription text COLLATE "C" NOT NULL,
  kind         text COLLATE "C" NOT NULL CHECK (kind IN ('data', 'fired', 'cleared', 'no_data', 'test')),
  price        bigint NOT NULL CHECK (price >= 0),
  created_at   bigint NOT NULL,
  due_at       bigint NOT NULL,
  expires_at   bigint NOT NULL,
  lane         bigint NOT NULL,
  state        text COLLATE "C" NOT NULL CHECK (state IN ('open', 'accepted', 'charged', 'free', 'released', 'skipped')),
  reason       text COLLATE "C",
  attempts     bigint NOT NULL,
  claims       bigint NOT NULL,
  payload      text COLLATE "C",
  condition    bytea,                                              -- JSON
  sent_at      bigint,
  finished_at  bigint,
  status       bigint,
  error        text COLLATE "C",
  duration_ms  bigint,
  state_before bytea,                                              -- of the condition, JSON
  state_after  bytea,
  captured_at bigint,
  seq bigint NOT NULL DEFAULT 0
);
CREATE INDEX webhook_fire_due ON webhook_fire(lane, due_at) WHERE state IN ('open', 'accepted');
CREATE INDEX webhook_fire_log ON webhook_fire(subscription, seq);

CREATE TABLE webhook_payload(
  digest     text COLLATE "C" PRIMARY KEY,
  body       bytea NOT NULL,                                       -- zstd
  created_at bigint NOT NULL
);
CREATE INDEX webhook_payload_age ON webhook_payload(created_at);

CREATE TABLE oauth_client(
  id            text COLLATE "C" PRIMARY KEY,
  name          text COLLATE "C" NOT NULL,
  redirect_uris text COLLATE "C" NOT NULL,  -- a JSON list
  created_at    bigint NOT NULL,
  auth_method   text COLLATE "C" NOT NULL,
  secret_hash   bytea CHECK (length(secret_hash) = 32),          -- NULL: a public client
  used_at       bigint                                         -- when it last got a token
);
CREATE INDEX oauth_client_used ON oauth_client(coalesce(used_at, created_at));

CREATE TABLE oauth_request(                                     -- waits for a person
  id           bytea PRIMARY KEY CHECK (length(id) = 32),        -- SHA-256 of what its page carries
  browser      bytea NOT NULL CHECK (length(browser) = 32),      -- SHA-256 of the browser's cookie
  client_id    text COLLATE "C" NOT NULL,
  client_name  text COLLATE "C" NOT NULL,
  redirect_uri text COLLATE "C" NOT NULL,
  state        text COLLATE "C",
  challenge    text COLLATE "C" NOT NULL,  -- PKCE, S256
  created_at   bigint NOT NULL,
  expires_at   bigint NOT NULL,
  purchase     bytea,                                            -- encrypted under what the page carries
  answered_at  bigint
);
CREATE INDEX oauth_request_expiry ON oauth_request(expires_at);

CREATE TABLE oauth_grant(
  id           text COLLATE "C" PRIMARY KEY,
  client_id    text COLLATE "C" NOT NULL,
  redirect_uri text COLLATE "C" NOT NULL,
  challenge    text COLLATE "C" NOT NULL,
  child        text COLLATE "C" NOT NULL CHECK (length(child) = 64),        -- SHA-256 of the allowance's token, hex
  created_at   bigint NOT NULL,
  expires_at   bigint NOT NULL,
  revoked_at   bigint
);
CREATE INDEX oauth_grant_expiry ON oauth_grant(expires_at);

CREATE TABLE oauth_secret(
  hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
  grant_id   text COLLATE "C" NOT NULL REFERENCES oauth_grant(id),
  kind       text COLLATE "C" NOT NULL CHECK (kind IN ('code', 'access', 'refresh')),
  sealed     bytea NOT NULL,                                     -- the allowance's token, encrypted under the secret
  expires_at bigint NOT NULL,
  used_at    bigint                                            -- of a code or a refresh token
);
CREATE INDEX oauth_secret_of_grant ON oauth_secret(grant_id, used_at);
CREATE INDEX oauth_secret_expiry ON oauth_secret(expires_at);

-- Numbers of transfers and of accounts. Each group of operations takes the next 1,024 after it has locked its accounts,
-- so that the transfers of one account are numbered in their order, whichever instance writes them.
CREATE SEQUENCE ledger_number START 1024 INCREMENT 1024;

INSERT INTO account(id, kind) VALUES (1, 'issued'), (2, 'revenue'), (3, 'suspense');

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;

CREATE TRIGGER transfer_is_never_changed BEFORE UPDATE ON transfer FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a transfer is never changed');

CREATE TRIGGER transfer_is_never_deleted BEFORE DELETE ON transfer FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a transfer is never deleted');

CREATE TRIGGER reservation_moves_towards_no_charge BEFORE UPDATE ON reservation FOR EACH ROW
  WHEN (NOT (
    NEW.call_id = OLD.call_id AND NEW.account = OLD.account AND NEW.credits = OLD.credits AND NEW.transfer = OLD.transfer
    AND ((OLD.state = 'open' AND NEW.state IN ('posted', 'voided')) OR (OLD.state = 'posted' AND NEW.state = 'reversed'))))
  EXECUTE FUNCTION refuse_change('a reservation only moves towards no charge');

CREATE TRIGGER reservation_is_never_deleted BEFORE DELETE ON reservation FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a reservation is never deleted');

CREATE TRIGGER reservation_keeps_its_allowance BEFORE UPDATE OF allowance, day ON reservation FOR EACH ROW
  WHEN ((NEW.allowance, NEW.day) IS DISTINCT FROM (OLD.allowance, OLD.day))
  EXECUTE FUNCTION refuse_change('a reservation keeps its allowance');

CREATE TRIGGER allowance_keeps_its_owner BEFORE UPDATE ON allowance FOR EACH ROW
  WHEN ((NEW.id, NEW.hash, NEW.ref, NEW.parent, NEW.created_at)
      IS DISTINCT FROM (OLD.id, OLD.hash, OLD.ref, OLD.parent, OLD.created_at)
    OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at))
  EXECUTE FUNCTION refuse_change('an allowance keeps its owner, and stays revoked');

CREATE TRIGGER allowance_is_never_deleted BEFORE DELETE ON allowance FOR EACH ROW
  EXECUTE FUNCTION refuse_change('an allowance is never deleted');

CREATE TRIGGER receipt_is_never_changed BEFORE UPDATE ON receipt FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a receipt is never changed');

CREATE TRIGGER no_charge_is_never_changed BEFORE UPDATE ON no_charge FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the log is never changed');

CREATE TRIGGER no_charge_is_never_deleted BEFORE DELETE ON no_charge FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the log is never changed');

CREATE TRIGGER log_node_is_never_changed BEFORE UPDATE ON log_node FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the log is never changed');

CREATE TRIGGER log_node_is_never_deleted BEFORE DELETE ON log_node FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the log is never changed');

CREATE TRIGGER purchase_keeps_its_terms BEFORE UPDATE ON purchase FOR EACH ROW
  WHEN ((NEW.id, NEW.memo_hash, NEW.address, NEW.hd_index, NEW.amount, NEW.credits, NEW.challenge, NEW.created_at, NEW.expires_at)
    IS DISTINCT FROM (OLD.id, OLD.memo_hash, OLD.address, OLD.hd_index, OLD.amount, OLD.credits, OLD.challenge, OLD.created_at, OLD.expires_at))
  EXECUTE FUNCTION refuse_change('a purchase keeps its terms');

CREATE FUNCTION keep_purchase() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.state <> 'quoted' OR NOT EXISTS (SELECT 1 FROM old_quote q WHERE q.memo_hash = OLD.memo_hash AND
    (q.id, q.address, q.hd_index, q.amount, q.credits, q.challenge, q.created_at, q.expires_at) IS NOT DISTINCT FROM
    (OLD.id, OLD.address, OLD.hd_index, OLD.amount, OLD.credits, OLD.challenge, OLD.created_at, OLD.expires_at))
  THEN RAISE EXCEPTION 'a purchase is never deleted' USING ERRCODE = 'integrity_constraint_violation'; END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER purchase_is_never_deleted BEFORE DELETE ON purchase FOR EACH ROW EXECUTE FUNCTION keep_purchase();
CREATE FUNCTION keep_old_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM purchase WHERE memo_hash = OLD.memo_hash)
  THEN RAISE EXCEPTION 'an old quote is never deleted' USING ERRCODE = 'integrity_constraint_violation'; END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER old_quote_is_never_deleted BEFORE DELETE ON old_quote FOR EACH ROW EXECUTE FUNCTION keep_old_quote();

CREATE TRIGGER old_quote_keeps_its_terms BEFORE UPDATE ON old_quote FOR EACH ROW
  EXECUTE FUNCTION refuse_change('an old quote keeps its terms');

CREATE TRIGGER tx_reversal_is_never_changed BEFORE UPDATE ON tx_reversal FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a reversal is never changed');

CREATE TRIGGER tx_reversal_is_never_deleted BEFORE DELETE ON tx_reversal FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a reversal is never deleted');

CREATE TRIGGER x402_payment_keeps_its_terms BEFORE UPDATE ON x402_payment FOR EACH ROW
  WHEN ((NEW.payload, NEW.authorizer, NEW.nonce, NEW.amount, NEW.request, NEW.valid_before, NEW.claim, NEW.begun_at)
    IS DISTINCT FROM (OLD.payload, OLD.authorizer, OLD.nonce, OLD.amount, OLD.request, OLD.valid_before, OLD.claim, OLD.begun_at))
  EXECUTE FUNCTION refuse_change('a payment keeps its terms');

CREATE TRIGGER x402_payment_stays_settled BEFORE UPDATE ON x402_payment FOR EACH ROW
  WHEN (OLD.state = 'settled' AND (NEW.state, NEW.tx_hash, NEW.settled_at)
    IS DISTINCT FROM (OLD.state, OLD.tx_hash, OLD.settled_at))
  EXECUTE FUNCTION refuse_change('what is settled stays settled');

CREATE TRIGGER x402_payment_is_not_forgotten BEFORE DELETE ON x402_payment FOR EACH ROW
  WHEN (OLD.state = 'settled')
  EXECUTE FUNCTION refuse_change('what is settled is never deleted');

CREATE TRIGGER x402_payment_keeps_its_block BEFORE UPDATE OF begun_block ON x402_payment FOR EACH ROW
  WHEN (NEW.begun_block IS DISTINCT FROM OLD.begun_block)
  EXECUTE FUNCTION refuse_change('a payment keeps the block of its hand-over');

CREATE TRIGGER x402_confirmation_is_never_deleted BEFORE DELETE ON x402_confirmation FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a confirmation is never deleted');

CREATE TRIGGER x402_confirmation_stays_undone BEFORE UPDATE ON x402_confirmation FOR EACH ROW
  WHEN (OLD.undone_at IS NOT NULL)
  EXECUTE FUNCTION refuse_change('what was undone stays undone');

CREATE FUNCTION watch_x402_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO x402_confirmation(payload) VALUES (NEW.payload) ON CONFLICT DO NOTHING; RETURN NULL; END $$;
CREATE TRIGGER x402_payment_is_watched AFTER UPDATE OF state ON x402_payment FOR EACH ROW
  WHEN (NEW.state = 'settled' AND OLD.state = 'settling') EXECUTE FUNCTION watch_x402_payment();

CREATE TRIGGER webhook_subscription_stays_cancelled BEFORE UPDATE ON webhook_subscription FOR EACH ROW
  WHEN (OLD.state = 'cancelled' AND NEW.state <> 'cancelled')
  EXECUTE FUNCTION refuse_change('a cancelled subscription stays cancelled');

CREATE TRIGGER webhook_fire_moves_forward BEFORE UPDATE ON webhook_fire FOR EACH ROW
  WHEN (OLD.state NOT IN ('open', 'accepted') OR (OLD.state = 'accepted' AND NEW.state = 'open'))
  EXECUTE FUNCTION refuse_change('a fire that is over stays over');

CREATE TRIGGER sweep_is_never_deleted BEFORE DELETE ON sweep FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a sweep is never deleted');

CREATE TRIGGER sweep_keeps_its_terms BEFORE UPDATE ON sweep FOR EACH ROW
  WHEN ((NEW.payer, NEW.nonce, NEW.payee, NEW.amount)
    IS DISTINCT FROM (OLD.payer, OLD.nonce, OLD.payee, OLD.amount) OR OLD.done_at IS NOT NULL)
  EXECUTE FUNCTION refuse_change('a sweep keeps its terms');

CREATE TRIGGER refund_is_never_deleted BEFORE DELETE ON refund FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a refund is never deleted');

CREATE TRIGGER refund_keeps_its_terms BEFORE UPDATE ON refund FOR EACH ROW
  WHEN ((NEW.id, NEW.token, NEW.payee, NEW.credits, NEW.amount, NEW.asked_at)
    IS DISTINCT FROM (OLD.id, OLD.token, OLD.payee, OLD.credits, OLD.amount, OLD.asked_at)
    OR (OLD.payer IS NOT NULL AND NEW.payer IS DISTINCT FROM OLD.payer) OR OLD.ended_at IS NOT NULL)
  EXECUTE FUNCTION refuse_change('a refund keeps its terms');

CREATE TRIGGER reissue_is_never_deleted BEFORE DELETE ON reissue FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a reissue is never deleted');

CREATE TRIGGER reissue_keeps_its_terms BEFORE UPDATE ON reissue FOR EACH ROW
  WHEN ((NEW.id, NEW.token, NEW.payer, NEW.asked_at)
    IS DISTINCT FROM (OLD.id, OLD.token, OLD.payer, OLD.asked_at) OR OLD.ended_at IS NOT NULL)
  EXECUTE FUNCTION refuse_change('a reissue keeps its terms');


-- TRUNCATE asks no trigger of rows.

CREATE TRIGGER transfer_is_never_emptied BEFORE TRUNCATE ON transfer FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER reservation_is_never_emptied BEFORE TRUNCATE ON reservation FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER allowance_is_never_emptied BEFORE TRUNCATE ON allowance FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER receipt_is_never_emptied BEFORE TRUNCATE ON receipt FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER no_charge_is_never_emptied BEFORE TRUNCATE ON no_charge FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER log_node_is_never_emptied BEFORE TRUNCATE ON log_node FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER purchase_is_never_emptied BEFORE TRUNCATE ON purchase FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER tx_reversal_is_never_emptied BEFORE TRUNCATE ON tx_reversal FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER x402_payment_is_never_emptied BEFORE TRUNCATE ON x402_payment FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER x402_confirmation_is_never_emptied BEFORE TRUNCATE ON x402_confirmation FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER sweep_is_never_emptied BEFORE TRUNCATE ON sweep FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER refund_is_never_emptied BEFORE TRUNCATE ON refund FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

CREATE TRIGGER reissue_is_never_emptied BEFORE TRUNCATE ON reissue FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');
