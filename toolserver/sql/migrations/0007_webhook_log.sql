-- The log of deliveries keeps its own order, whatever the clock does; a fire knows how old its data were; subscriptions
-- are counted by the token whose credits they spend; and what was cancelled long ago is found by its age.

ALTER TABLE webhook_fire ADD COLUMN captured_at INTEGER;               -- when the oldest part of its data was fetched
ALTER TABLE webhook_fire ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;    -- counts the fires of a subscription

DROP TRIGGER webhook_fire_moves_forward;
UPDATE webhook_fire SET seq =
  (SELECT count(*) FROM webhook_fire AS f WHERE f.subscription = webhook_fire.subscription AND f.id <= webhook_fire.id);
CREATE TRIGGER webhook_fire_moves_forward BEFORE UPDATE ON webhook_fire
WHEN OLD.state NOT IN ('open', 'accepted') OR (OLD.state = 'accepted' AND NEW.state = 'open')
BEGIN SELECT RAISE(ABORT, 'a fire that is over stays over'); END;

DROP INDEX webhook_fire_log;
CREATE INDEX webhook_fire_log ON webhook_fire(subscription, seq);

ALTER TABLE webhook_subscription ADD COLUMN payer TEXT NOT NULL DEFAULT '';  -- SHA-256 of a token, hex
UPDATE webhook_subscription SET payer = owner;
CREATE INDEX webhook_subscription_payer ON webhook_subscription(payer);

CREATE INDEX webhook_subscription_ended ON webhook_subscription(paused_at) WHERE state = 'cancelled';
