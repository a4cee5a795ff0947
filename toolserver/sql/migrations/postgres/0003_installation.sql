-- What the marker file of a data directory says of a file: whether the credits are those of the simulated world.

CREATE TABLE installation(
  one       bigint PRIMARY KEY CHECK (one = 1),
  simulated bigint NOT NULL CHECK (simulated IN (0, 1))
);
