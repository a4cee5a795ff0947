-- What each account that pays for webhooks had for nothing over its life: webhooks/unpaid_bodies.py. Never deleted.

CREATE TABLE webhook_payer(
  payer   text COLLATE "C" PRIMARY KEY,             -- the account, by the SHA-256 of its token
  paid    bigint NOT NULL CHECK (paid >= 0),        -- credits charged for deliveries
  refused bigint NOT NULL CHECK (refused >= 0),     -- bodies with a price that were sent and are not paid for
  free    bigint NOT NULL CHECK (free >= 0)         -- bodies that cost nothing
);
INSERT INTO webhook_payer SELECT payer, sum(delivered_count), 0, 0 FROM webhook_subscription GROUP BY payer;
