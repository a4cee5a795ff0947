-- A ledger may also leave for a file. An instance that starts meanwhile, or later, is told so and serves nothing.

ALTER TABLE ledger_move DROP CONSTRAINT ledger_move_state_check;
ALTER TABLE ledger_move ADD CONSTRAINT ledger_move_state_check
  CHECK (state IN ('copying', 'complete', 'leaving', 'left'));
