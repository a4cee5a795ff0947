"""Reads the chain, watches it and writes to it: servers, hashes and signatures, confirmations, reorganisations."""
