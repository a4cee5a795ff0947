-- Purchases of credits. Times are milliseconds since 1970, amounts 0.000001 USDC; hashes and addresses are bytes, so
-- that one transaction is one key however it is spelled.

CREATE TABLE purchase(
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  memo_hash  BLOB NOT NULL UNIQUE CHECK (length(memo_hash) = 32),  -- SHA-256; the memo itself is nowhere
  address    BLOB NOT NULL CHECK (length(address) = 20),
  hd_index   INTEGER UNIQUE CHECK (hd_index >= 0),                 -- NULL: the address is shared by purchases
  amount     INTEGER NOT NULL CHECK (amount > 0),
  credits    INTEGER NOT NULL CHECK (credits > 0),
  challenge  TEXT,                                                 -- RFC 7636 S256; NULL: none was given
  state      TEXT NOT NULL CHECK (state IN ('quoted', 'credited', 'reorged')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX purchase_address_once ON purchase(address) WHERE hd_index IS NOT NULL;

-- An address that was given out once is known for ever.
CREATE TRIGGER purchase_is_never_deleted BEFORE DELETE ON purchase
BEGIN SELECT RAISE(ABORT, 'a purchase is never deleted'); END;
CREATE TRIGGER purchase_keeps_its_terms BEFORE UPDATE ON purchase
WHEN (NEW.id, NEW.memo_hash, NEW.address, NEW.hd_index, NEW.amount, NEW.credits, NEW.challenge, NEW.created_at, NEW.expires_at)
  IS NOT (OLD.id, OLD.memo_hash, OLD.address, OLD.hd_index, OLD.amount, OLD.credits, OLD.challenge, OLD.created_at, OLD.expires_at)
BEGIN SELECT RAISE(ABORT, 'a purchase keeps its terms'); END;

-- Transactions that were turned into credits: each once, each purchase once.
CREATE TABLE tx_credit(
  chain_id      INTEGER NOT NULL,
  tx_hash       BLOB NOT NULL CHECK (length(tx_hash) = 32),
  purchase      INTEGER NOT NULL UNIQUE REFERENCES purchase(id),
  token         TEXT NOT NULL REFERENCES token(hash),
  block_number  INTEGER NOT NULL,
  block_hash    BLOB NOT NULL CHECK (length(block_hash) = 32),
  block_time    INTEGER NOT NULL,
  amount        INTEGER NOT NULL CHECK (amount > 0),
  credits       INTEGER NOT NULL CHECK (credits > 0),
  logs          TEXT NOT NULL,                  -- which of the transaction's logs were counted
  finality      TEXT NOT NULL CHECK (finality IN ('blocks', 'safe', 'finalized')),
  late          INTEGER NOT NULL CHECK (late IN (0, 1)),
  memo_public   INTEGER NOT NULL CHECK (memo_public IN (0, 1)),
  credited_at   INTEGER NOT NULL,
  sealed        BLOB,                           -- the token under a key made of the memo, until it is used
  sealed_until  INTEGER,
  final_at      INTEGER,                        -- NULL: a reorganisation of the chain could still undo it
  missing_since INTEGER,
  PRIMARY KEY (chain_id, tx_hash),
  CHECK ((sealed IS NULL) = (sealed_until IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX tx_credit_watched ON tx_credit(credited_at) WHERE final_at IS NULL;
CREATE INDEX tx_credit_sealed ON tx_credit(token) WHERE sealed IS NOT NULL;

-- Credits whose transaction is gone: `taken_back` from the account, `lost` because they were spent.
CREATE TABLE tx_reversal(
  id           INTEGER PRIMARY KEY,
  chain_id     INTEGER NOT NULL,
  tx_hash      BLOB NOT NULL,
  purchase     INTEGER NOT NULL REFERENCES purchase(id),
  token        TEXT NOT NULL REFERENCES token(hash),
  block_number INTEGER NOT NULL,
  block_hash   BLOB NOT NULL,
  amount       INTEGER NOT NULL,
  credits      INTEGER NOT NULL,
  taken_back   INTEGER NOT NULL,
  lost         INTEGER NOT NULL CHECK (lost = credits - taken_back AND lost >= 0),
  at           INTEGER NOT NULL
) STRICT;
CREATE INDEX tx_reversal_of ON tx_reversal(purchase);
CREATE TRIGGER tx_reversal_is_never_changed BEFORE UPDATE ON tx_reversal
BEGIN SELECT RAISE(ABORT, 'a reversal is never changed'); END;
CREATE TRIGGER tx_reversal_is_never_deleted BEFORE DELETE ON tx_reversal
BEGIN SELECT RAISE(ABORT, 'a reversal is never deleted'); END;

-- Money that came and bought nothing: cases for the operator.
CREATE TABLE unapplied_payment(
  chain_id INTEGER NOT NULL,
  tx_hash  BLOB NOT NULL CHECK (length(tx_hash) = 32),
  purchase INTEGER NOT NULL REFERENCES purchase(id),
  amount   INTEGER NOT NULL CHECK (amount > 0),
  reason   TEXT NOT NULL CHECK (reason IN ('second_transfer', 'transaction_used', 'below_minimum', 'late')),
  seen_at  INTEGER NOT NULL,
  PRIMARY KEY (chain_id, tx_hash, purchase)
) STRICT, WITHOUT ROWID;
