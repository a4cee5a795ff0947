-- Subscriptions to push delivery, and their fires. Times are milliseconds since 1970.

CREATE TABLE webhook_subscription(
  id                   TEXT PRIMARY KEY,
  owner                TEXT NOT NULL CHECK (length(owner) = 64),  -- SHA-256 of the token, hex
  account              TEXT NOT NULL,                             -- names the token's account to the ledger
  endpoint             TEXT NOT NULL,
  url                  TEXT NOT NULL,
  host                 TEXT NOT NULL,
  params               BLOB NOT NULL,                             -- JSON
  sealed               BLOB NOT NULL,                             -- secrets and custom headers, encrypted
  created_at           INTEGER NOT NULL,
  due_at               INTEGER NOT NULL,
  description          TEXT NOT NULL,
  condition            BLOB,                                      -- JSON
  condition_state      BLOB,                                      -- JSON
  state                TEXT NOT NULL CHECK (state IN ('active', 'paused', 'cancelled')),
  pause_reason         TEXT,
  paused_at            INTEGER,
  last_delivered_at    INTEGER,
  last_status          INTEGER,
  last_error           TEXT,
  consecutive_failures INTEGER NOT NULL,
  failing_since        INTEGER,
  delivered_count      INTEGER NOT NULL,
  failed_count         INTEGER NOT NULL,
  slow                 INTEGER NOT NULL,
  CHECK ((state = 'paused') = (pause_reason IS NOT NULL))
) STRICT;
CREATE INDEX webhook_subscription_due ON webhook_subscription(due_at) WHERE state = 'active';
CREATE INDEX webhook_subscription_owner ON webhook_subscription(owner);
CREATE INDEX webhook_subscription_failing ON webhook_subscription(failing_since)
  WHERE failing_since IS NOT NULL AND state <> 'cancelled';

CREATE TRIGGER webhook_subscription_stays_cancelled BEFORE UPDATE ON webhook_subscription
WHEN OLD.state = 'cancelled' AND NEW.state <> 'cancelled'
BEGIN SELECT RAISE(ABORT, 'a cancelled subscription stays cancelled'); END;

CREATE TABLE webhook_fire(
  id           TEXT PRIMARY KEY,                                  -- also the id of the paid call
  subscription TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('data', 'fired', 'cleared', 'no_data', 'test')),
  price        INTEGER NOT NULL CHECK (price >= 0),
  created_at   INTEGER NOT NULL,
  due_at       INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  lane         INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('open', 'accepted', 'charged', 'free', 'released', 'skipped')),
  reason       TEXT,
  attempts     INTEGER NOT NULL,
  claims       INTEGER NOT NULL,
  payload      TEXT,
  condition    BLOB,                                              -- JSON
  sent_at      INTEGER,
  finished_at  INTEGER,
  status       INTEGER,
  error        TEXT,
  duration_ms  INTEGER,
  state_before BLOB,                                              -- of the condition, JSON
  state_after  BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_fire_due ON webhook_fire(lane, due_at) WHERE state IN ('open', 'accepted');
CREATE INDEX webhook_fire_log ON webhook_fire(subscription, id);

CREATE TRIGGER webhook_fire_moves_forward BEFORE UPDATE ON webhook_fire
WHEN OLD.state NOT IN ('open', 'accepted') OR (OLD.state = 'accepted' AND NEW.state = 'open')
BEGIN SELECT RAISE(ABORT, 'a fire that is over stays over'); END;

-- What open fires carry: one row for each composition, however many subscriptions share it.
CREATE TABLE webhook_payload(
  digest     TEXT PRIMARY KEY,
  body       BLOB NOT NULL,                                       -- zstd
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_payload_age ON webhook_payload(created_at);
