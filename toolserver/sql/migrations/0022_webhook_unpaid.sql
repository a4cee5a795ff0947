-- Bodies of webhooks that were sent and are not paid for: webhooks/unpaid_bodies.py. They outlive their subscription.

CREATE TABLE webhook_unpaid(
  fire    TEXT PRIMARY KEY,
  payer   TEXT NOT NULL,                                 -- the account, by the SHA-256 of its token
  owner   TEXT NOT NULL,                                 -- the SHA-256 of the token that subscribed
  target  TEXT NOT NULL,                                 -- the SHA-256 of the URL
  host    TEXT NOT NULL,
  sent_at INTEGER NOT NULL,                              -- milliseconds since 1970
  refused INTEGER NOT NULL CHECK (refused IN (0, 1))     -- 0: no answer yet
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_unpaid_payer ON webhook_unpaid(payer, sent_at);
CREATE INDEX webhook_unpaid_owner ON webhook_unpaid(owner, sent_at);
CREATE INDEX webhook_unpaid_target ON webhook_unpaid(target, sent_at);
CREATE INDEX webhook_unpaid_host ON webhook_unpaid(host, sent_at);
CREATE INDEX webhook_unpaid_age ON webhook_unpaid(sent_at);
