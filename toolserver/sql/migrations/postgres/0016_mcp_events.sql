-- Subscriptions of MCP Events: webhooks/events.py. Times are milliseconds since 1970.

ALTER TABLE webhook_subscription ADD COLUMN event bytea;          -- id, name, arguments, verified_at, JSON; NULL: none of these
ALTER TABLE webhook_subscription ADD COLUMN expires_at bigint;    -- NULL: it does not end by itself
CREATE INDEX webhook_subscription_expiry ON webhook_subscription(expires_at)
  WHERE expires_at IS NOT NULL AND state <> 'cancelled';
