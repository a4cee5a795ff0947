-- What several instances that sell need beside the tables that a file has too.

-- How often a lease has changed hands. Who writes under a lease names the number that it had.
ALTER TABLE lease ADD COLUMN fence bigint NOT NULL DEFAULT 1;

-- The first number of a deposit address that no instance has set aside.
CREATE TABLE deposit_number(
  one  bigint PRIMARY KEY CHECK (one = 1),
  next bigint NOT NULL CHECK (next >= 0)
);

-- A condition that is true or false is simplified away before an index on it could be found: so it is a number.
DROP INDEX webhook_subscription_due;
CREATE INDEX webhook_subscription_due
  ON webhook_subscription((CASE WHEN consecutive_failures > 0 OR slow > 0 THEN 1 ELSE 0 END), due_at)
  WHERE state = 'active';
