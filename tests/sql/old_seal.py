"""Seals a file as the versions before `writer_seal` did, written from their description: for tests of upgrades."""

import hashlib

import msgspec

from toolserver.sql.sealed_file import OLD_TABLES

MODULUS = 1 << 256


def keyed(key, use, text):
    own = hashlib.blake2b(use, key=key, digest_size=32).digest()
    return hashlib.blake2b(text, key=own, digest_size=32).digest()


def seal_as_before(db, key, counter=1, nonce=b"n" * 16):
    """Store the seal of every row of the tables that the file has."""
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    sums = b""
    for number, table in enumerate(table for table in OLD_TABLES if table in there):
        rows = db.execute(f"SELECT * FROM {table}").fetchall()
        total = sum(int.from_bytes(keyed(key, b"row", msgspec.msgpack.encode((number, row)))) for row in rows)
        mask = int.from_bytes(keyed(key, b"mask", nonce + bytes([number])))
        sums += ((total + mask) % MODULUS).to_bytes(32)
    mac = keyed(key, b"mac", counter.to_bytes(8) + nonce + sums)
    db.execute("INSERT OR REPLACE INTO row_seal VALUES(1,?,?,?,?)", (counter, nonce, sums, mac))
