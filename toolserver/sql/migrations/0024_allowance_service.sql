-- An allowance that was made through a sister service pays for that service's calls only.

ALTER TABLE allowance ADD COLUMN service TEXT;  -- the first service of the key that made it; NULL: every call

DROP TRIGGER allowance_keeps_its_owner;
CREATE TRIGGER allowance_keeps_its_owner BEFORE UPDATE ON allowance
WHEN (NEW.id, NEW.hash, NEW.ref, NEW.parent, NEW.created_at, NEW.service)
    IS NOT (OLD.id, OLD.hash, OLD.ref, OLD.parent, OLD.created_at, OLD.service)
  OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS NOT OLD.revoked_at)
BEGIN SELECT RAISE(ABORT, 'an allowance keeps its owner, and stays revoked'); END;
