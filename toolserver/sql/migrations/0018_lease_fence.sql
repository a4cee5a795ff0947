-- How often a lease has changed hands. Who writes under a lease names the number that it had.
ALTER TABLE lease ADD COLUMN fence INTEGER NOT NULL DEFAULT 1;
