"""One module per provider: how to ask, how to read, what its answers are worth. Pure: no I/O, no clock."""
