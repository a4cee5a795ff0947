-- A file that is being moved here, or was: how far it came, so that the move can go on where it was interrupted.

CREATE TABLE ledger_move(
  one      bigint PRIMARY KEY CHECK (one = 1),
  source   text COLLATE "C" NOT NULL,  -- names the move; the data directory has it too
  sealed   bigint NOT NULL,            -- transactions that were sealed in the file when the move began
  state    text COLLATE "C" NOT NULL CHECK (state IN ('copying', 'complete')),
  began_at bigint NOT NULL,
  ended_at bigint,
  CHECK ((state = 'complete') = (ended_at IS NOT NULL))
);

CREATE TABLE ledger_move_table(
  name     text COLLATE "C" PRIMARY KEY,
  last_key bytea,                      -- of the last row that was copied, as MessagePack; NULL: none was
  copied   bigint NOT NULL DEFAULT 0
);
