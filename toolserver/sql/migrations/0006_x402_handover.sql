-- A payment by x402 is looked for from the block on at which it was handed to the facilitator, however long we were down;
-- and a paid call whose answer was never given is known as such.

ALTER TABLE x402_payment ADD COLUMN begun_block INTEGER CHECK (begun_block >= 0);  -- NULL: no RPC server answered then
ALTER TABLE x402_payment ADD COLUMN answered_at INTEGER;                           -- of a call: its answer was kept

UPDATE x402_payment SET answered_at = settled_at WHERE state = 'settled';

CREATE INDEX x402_payment_owed ON x402_payment(settled_at)
WHERE state = 'settled' AND token IS NULL AND answered_at IS NULL;

CREATE TRIGGER x402_payment_keeps_its_block BEFORE UPDATE OF begun_block ON x402_payment
WHEN NEW.begun_block IS NOT OLD.begun_block
BEGIN SELECT RAISE(ABORT, 'a payment keeps the block of its hand-over'); END;
