-- Marks that only rise, which a data directory has in a file: here all instances have the same ones.

CREATE TABLE mark(
  name  text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL      -- JSON; null until it is raised first
);

INSERT INTO mark(name, value) SELECT 'address', CAST(next AS text) FROM deposit_number;
