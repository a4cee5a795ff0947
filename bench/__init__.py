"""The hot path against its peers: same machine, same run, CPU per call first. `make bench` prints the tables."""
