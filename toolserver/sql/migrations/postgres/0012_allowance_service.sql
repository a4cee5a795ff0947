-- An allowance that was made through a sister service pays for that service's calls only.

ALTER TABLE allowance ADD COLUMN service text COLLATE "C";  -- the first service of the key that made it; null: every call

DROP TRIGGER allowance_keeps_its_owner ON allowance;
CREATE TRIGGER allowance_keeps_its_owner BEFORE UPDATE ON allowance FOR EACH ROW
  WHEN ((NEW.id, NEW.hash, NEW.ref, NEW.parent, NEW.created_at, NEW.service)
      IS DISTINCT FROM (OLD.id, OLD.hash, OLD.ref, OLD.parent, OLD.created_at, OLD.service)
    OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at))
  EXECUTE FUNCTION refuse_change('an allowance keeps its owner, and stays revoked');
