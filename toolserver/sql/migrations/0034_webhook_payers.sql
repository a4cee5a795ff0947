-- What each account that pays for webhooks had for nothing over its life: webhooks/unpaid_bodies.py. Never deleted.

CREATE TABLE webhook_payer(
  payer   TEXT PRIMARY KEY,                          -- the account, by the SHA-256 of its token
  paid    INTEGER NOT NULL CHECK (paid >= 0),        -- credits charged for deliveries
  refused INTEGER NOT NULL CHECK (refused >= 0),     -- bodies with a price that were sent and are not paid for
  free    INTEGER NOT NULL CHECK (free >= 0)         -- bodies that cost nothing
) STRICT, WITHOUT ROWID;
INSERT INTO webhook_payer SELECT payer, sum(delivered_count), 0, 0 FROM webhook_subscription GROUP BY payer;
