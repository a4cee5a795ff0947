"""Compare the hot path with its peers: same machine, same run, CPU per call first. `make bench` prints the tables."""
