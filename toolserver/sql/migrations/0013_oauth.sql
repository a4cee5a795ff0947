-- OAuth for hosts that only know that. Secrets are stored as SHA-256, and what they open is encrypted under them.
-- Times are milliseconds since 1970.

CREATE TABLE oauth_client(
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,                                  -- a JSON list
  created_at    INTEGER NOT NULL,
  auth_method   TEXT NOT NULL,
  secret_hash   BLOB CHECK (length(secret_hash) = 32),          -- NULL: a public client
  used_at       INTEGER                                         -- when it last got a token
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_client_used ON oauth_client(coalesce(used_at, created_at));

CREATE TABLE oauth_request(                                     -- waits for a person
  id           BLOB PRIMARY KEY CHECK (length(id) = 32),        -- SHA-256 of what its page carries
  browser      BLOB NOT NULL CHECK (length(browser) = 32),      -- SHA-256 of the browser's cookie
  client_id    TEXT NOT NULL,
  client_name  TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  state        TEXT,
  challenge    TEXT NOT NULL,                                   -- PKCE, S256
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  purchase     BLOB,                                            -- encrypted under what the page carries
  answered_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_request_expiry ON oauth_request(expires_at);

CREATE TABLE oauth_grant(
  id           TEXT PRIMARY KEY,
  client_id    TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  challenge    TEXT NOT NULL,
  child        TEXT NOT NULL CHECK (length(child) = 64),        -- SHA-256 of the allowance's token, hex
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  revoked_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_grant_expiry ON oauth_grant(expires_at);

CREATE TABLE oauth_secret(
  hash       BLOB PRIMARY KEY CHECK (length(hash) = 32),
  grant_id   TEXT NOT NULL REFERENCES oauth_grant(id),
  kind       TEXT NOT NULL CHECK (kind IN ('code', 'access', 'refresh')),
  sealed     BLOB NOT NULL,                                     -- the allowance's token, encrypted under the secret
  expires_at INTEGER NOT NULL,
  used_at    INTEGER                                            -- of a code or a refresh token
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_secret_of_grant ON oauth_secret(grant_id, used_at);
CREATE INDEX oauth_secret_expiry ON oauth_secret(expires_at);
