-- Subscriptions whose endpoint fails or is slow are claimed after the others, so that ten thousand of them delay nobody.

DROP INDEX webhook_subscription_due;
CREATE INDEX webhook_subscription_due ON webhook_subscription((consecutive_failures > 0 OR slow > 0), due_at)
  WHERE state = 'active';
