-- The book of the chain (money/chain): every transfer of USDC to or from an address of ours, with its state. It is read
-- from the chain and can be read again. Times are milliseconds since 1970, amounts 0.000001 USDC.

CREATE TABLE chain_transfer(
  id           BLOB PRIMARY KEY CHECK (length(id) = 16),  -- made of the five terms that stay when a block is replaced
  tx_hash      BLOB NOT NULL CHECK (length(tx_hash) = 32),
  payer        BLOB NOT NULL CHECK (length(payer) = 20),
  payee        BLOB NOT NULL CHECK (length(payee) = 20),
  amount       INTEGER NOT NULL CHECK (amount > 0),
  inward       INTEGER NOT NULL CHECK (inward IN (0, 1)),   -- the payee is an address of ours
  outward      INTEGER NOT NULL CHECK (outward IN (0, 1)),  -- the payer is
  block_number INTEGER NOT NULL,
  block_hash   BLOB NOT NULL CHECK (length(block_hash) = 32),
  block_time   INTEGER NOT NULL,
  log_index    INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('quoted', 'pending', 'credited', 'second', 'late', 'short', 'foreign', 'held',
                 'undone', 'swept', 'refunded')),
  changes      INTEGER NOT NULL CHECK (changes > 0),        -- rows of `chain_change`
  CHECK (inward + outward > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX chain_transfer_payee ON chain_transfer(payee) WHERE inward = 1;
CREATE INDEX chain_transfer_payer ON chain_transfer(payer) WHERE outward = 1;
CREATE INDEX chain_transfer_tx ON chain_transfer(tx_hash);
CREATE INDEX chain_transfer_block ON chain_transfer(block_number);
CREATE INDEX chain_transfer_pending ON chain_transfer(id) WHERE state = 'pending';
CREATE TRIGGER chain_transfer_is_never_deleted BEFORE DELETE ON chain_transfer
BEGIN SELECT RAISE(ABORT, 'a transfer on the chain is never deleted'); END;
CREATE TRIGGER chain_transfer_keeps_its_terms BEFORE UPDATE ON chain_transfer
WHEN (NEW.id, NEW.tx_hash, NEW.payer, NEW.payee, NEW.amount) IS NOT (OLD.id, OLD.tx_hash, OLD.payer, OLD.payee, OLD.amount)
  OR NEW.changes < OLD.changes
BEGIN SELECT RAISE(ABORT, 'a transfer on the chain keeps its terms'); END;

-- What became of each transfer, in order.
CREATE TABLE chain_change(
  transfer     BLOB NOT NULL REFERENCES chain_transfer(id),
  number       INTEGER NOT NULL CHECK (number > 0),
  state        TEXT NOT NULL,
  block_number INTEGER NOT NULL,
  block_hash   BLOB NOT NULL,
  at           INTEGER NOT NULL,
  PRIMARY KEY (transfer, number)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER chain_change_is_never_changed BEFORE UPDATE ON chain_change
BEGIN SELECT RAISE(ABORT, 'the history of a transfer is never changed'); END;
CREATE TRIGGER chain_change_is_never_deleted BEFORE DELETE ON chain_change
BEGIN SELECT RAISE(ABORT, 'the history of a transfer is never changed'); END;

-- Amounts too small to be worth a row each, of final blocks only. What is at or below block `through` is counted.
CREATE TABLE chain_dust(
  address         BLOB PRIMARY KEY CHECK (length(address) = 20),
  received        INTEGER NOT NULL,
  received_amount INTEGER NOT NULL,
  sent            INTEGER NOT NULL,
  sent_amount     INTEGER NOT NULL,
  zeros           INTEGER NOT NULL,  -- transfers of nothing, in either direction
  through         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far the chain was read, by the name of the task.
CREATE TABLE chain_scan(
  name  TEXT PRIMARY KEY,
  block INTEGER NOT NULL,
  at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a wallet that is not ours alone held before the first block that was read.
CREATE TABLE chain_opening(
  address BLOB PRIMARY KEY CHECK (length(address) = 20),
  amount  INTEGER NOT NULL,
  block   INTEGER NOT NULL,
  at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER chain_opening_is_never_changed BEFORE UPDATE ON chain_opening
BEGIN SELECT RAISE(ABORT, 'an opening balance is never changed'); END;
CREATE TRIGGER chain_opening_is_never_deleted BEFORE DELETE ON chain_opening
BEGIN SELECT RAISE(ABORT, 'an opening balance is never changed'); END;

-- Addresses whose transfers do not add up to their balance: cases for the operator, until they do.
CREATE TABLE chain_difference(
  address BLOB PRIMARY KEY CHECK (length(address) = 20),
  booked  INTEGER NOT NULL,
  held    INTEGER NOT NULL,
  block   INTEGER NOT NULL,
  at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whose an address is, for quotes that were archived too.
CREATE INDEX old_quote_address ON old_quote(address) WHERE hd_index IS NOT NULL;

-- What a transaction on the chain was for, among signed payments.
CREATE INDEX x402_payment_tx ON x402_payment(tx_hash) WHERE tx_hash IS NOT NULL;
CREATE INDEX x402_confirmation_tx ON x402_confirmation(tx_hash) WHERE tx_hash IS NOT NULL;
