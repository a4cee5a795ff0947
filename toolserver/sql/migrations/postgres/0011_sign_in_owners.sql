-- Who began a sign-in or registered a client: an address, or the /48 of one, by which a full table makes room. '' is
-- unknown, and stands for every client that was used.
ALTER TABLE oauth_request ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE oauth_client ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
