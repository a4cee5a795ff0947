"""Share between instances what one process keeps in memory: a connection to Redis."""
