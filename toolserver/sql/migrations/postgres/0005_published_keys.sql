-- The public keys that instances sign with, so that all of them show the same set. A secret without a public half has its
-- fingerprint as kid, and an empty jwk.
CREATE TABLE published_key(
  purpose text COLLATE "C" NOT NULL,
  kid     text COLLATE "C" NOT NULL,
  jwk     text COLLATE "C" NOT NULL,
  PRIMARY KEY (purpose, kid)
);
