-- The book of the chain (money/chain): every transfer of USDC to or from an address of ours, with its state. It is read
-- from the chain and can be read again. Times are milliseconds since 1970, amounts 0.000001 USDC.

CREATE TABLE chain_transfer(
  id           bytea PRIMARY KEY CHECK (length(id) = 16),  -- made of the five terms that stay when a block is replaced
  tx_hash      bytea NOT NULL CHECK (length(tx_hash) = 32),
  payer        bytea NOT NULL CHECK (length(payer) = 20),
  payee        bytea NOT NULL CHECK (length(payee) = 20),
  amount       bigint NOT NULL CHECK (amount > 0),
  inward       bigint NOT NULL CHECK (inward IN (0, 1)),   -- the payee is an address of ours
  outward      bigint NOT NULL CHECK (outward IN (0, 1)),  -- the payer is
  block_number bigint NOT NULL,
  block_hash   bytea NOT NULL CHECK (length(block_hash) = 32),
  block_time   bigint NOT NULL,
  log_index    bigint NOT NULL,
  state        text COLLATE "C" NOT NULL CHECK (state IN ('quoted', 'pending', 'credited', 'second', 'late', 'short', 'foreign', 'held',
                 'undone', 'swept', 'refunded')),
  changes      bigint NOT NULL CHECK (changes > 0),        -- rows of `chain_change`
  CHECK (inward + outward > 0)
);
CREATE INDEX chain_transfer_payee ON chain_transfer(payee) WHERE inward = 1;
CREATE INDEX chain_transfer_payer ON chain_transfer(payer) WHERE outward = 1;
CREATE INDEX chain_transfer_tx ON chain_transfer(tx_hash);
CREATE INDEX chain_transfer_block ON chain_transfer(block_number);
CREATE INDEX chain_transfer_pending ON chain_transfer(id) WHERE state = 'pending';
CREATE TRIGGER chain_transfer_is_never_deleted BEFORE DELETE ON chain_transfer FOR EACH ROW
  EXECUTE FUNCTION refuse_change('a transfer on the chain is never deleted');
CREATE TRIGGER chain_transfer_keeps_its_terms BEFORE UPDATE ON chain_transfer FOR EACH ROW
  WHEN ((NEW.id, NEW.tx_hash, NEW.payer, NEW.payee, NEW.amount) IS DISTINCT FROM (OLD.id, OLD.tx_hash, OLD.payer, OLD.payee, OLD.amount)
  OR NEW.changes < OLD.changes)
  EXECUTE FUNCTION refuse_change('a transfer on the chain keeps its terms');
CREATE TRIGGER chain_transfer_is_never_emptied BEFORE TRUNCATE ON chain_transfer FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

-- What became of each transfer, in order.
CREATE TABLE chain_change(
  transfer     bytea NOT NULL REFERENCES chain_transfer(id),
  number       bigint NOT NULL CHECK (number > 0),
  state        text COLLATE "C" NOT NULL,
  block_number bigint NOT NULL,
  block_hash   bytea NOT NULL,
  at           bigint NOT NULL,
  PRIMARY KEY (transfer, number)
);
CREATE TRIGGER chain_change_is_never_changed BEFORE UPDATE ON chain_change FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the history of a transfer is never changed');
CREATE TRIGGER chain_change_is_never_deleted BEFORE DELETE ON chain_change FOR EACH ROW
  EXECUTE FUNCTION refuse_change('the history of a transfer is never changed');
CREATE TRIGGER chain_change_is_never_emptied BEFORE TRUNCATE ON chain_change FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

-- Amounts too small to be worth a row each, of final blocks only. What is at or below block `through` is counted.
CREATE TABLE chain_dust(
  address         bytea PRIMARY KEY CHECK (length(address) = 20),
  received        bigint NOT NULL,
  received_amount bigint NOT NULL,
  sent            bigint NOT NULL,
  sent_amount     bigint NOT NULL,
  zeros           bigint NOT NULL,  -- transfers of nothing, in either direction
  through         bigint NOT NULL
);

-- How far the chain was read, by the name of the task.
CREATE TABLE chain_scan(
  name  text COLLATE "C" PRIMARY KEY,
  block bigint NOT NULL,
  at    bigint NOT NULL
);

-- What a wallet that is not ours alone held before the first block that was read.
CREATE TABLE chain_opening(
  address bytea PRIMARY KEY CHECK (length(address) = 20),
  amount  bigint NOT NULL,
  block   bigint NOT NULL,
  at      bigint NOT NULL
);
CREATE TRIGGER chain_opening_is_never_changed BEFORE UPDATE ON chain_opening FOR EACH ROW
  EXECUTE FUNCTION refuse_change('an opening balance is never changed');
CREATE TRIGGER chain_opening_is_never_deleted BEFORE DELETE ON chain_opening FOR EACH ROW
  EXECUTE FUNCTION refuse_change('an opening balance is never changed');
CREATE TRIGGER chain_opening_is_never_emptied BEFORE TRUNCATE ON chain_opening FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change('rows of money are never deleted');

-- Addresses whose transfers do not add up to their balance: cases for the operator, until they do.
CREATE TABLE chain_difference(
  address bytea PRIMARY KEY CHECK (length(address) = 20),
  booked  bigint NOT NULL,
  held    bigint NOT NULL,
  block   bigint NOT NULL,
  at      bigint NOT NULL
);
