"""The USDC of transfers: received at the time of the credit, also where the chain undid it later."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.money.purchases.sql_books import read_transfer_books
from toolserver.sql.migrate import migrate

HASH, OTHER = b"\x01" * 32, b"\x02" * 32


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        db.execute("INSERT INTO account(id, kind) VALUES (4, 'token')")
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?, 4, 'acct_1', 0)", ("a" * 64,))
        for number in (1, 2):
            key = number.to_bytes(32, "big")
            row = (number, key, key[-20:], number)
            db.execute("INSERT INTO purchase VALUES (?,?,?,?,5000000,250,NULL,'credited',0,0)", row)
        cause = f"eip155:8453:0x{OTHER.hex()}:0"
        db.execute("INSERT INTO transfer VALUES (1, 'posted', 1, 4, 250, NULL, ?, 100)", (cause,))
        row = (8453, HASH, 1, "a" * 64, 7, HASH, 0, 5_000_000, 250, "[0]", "blocks", 0, 0, 150)
        db.execute("INSERT INTO tx_credit VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,NULL,NULL,NULL,NULL,NULL,NULL)", row)
        undone = (1, 8453, OTHER, 2, "a" * 64, 7, OTHER, 5_000_000, 250, 200, 50, 220)
        db.execute("INSERT INTO tx_reversal VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", undone)
        for hash in (HASH, OTHER):
            db.execute("INSERT INTO unapplied_payment VALUES (8453, ?, 1, 3000000, 'second_transfer', 160)", (hash,))
        yield db


def test_a_payment_counts_when_it_was_credited_and_again_when_it_was_undone(db):
    assert tuple(read_transfer_books(db, 100, 200)) == (2, 10_000_000, 500, 0, 0, 0, 0, 1, 3_000_000)
    assert tuple(read_transfer_books(db, 200, 300)) == (0, 0, 0, 1, 5_000_000, 200, 50, 0, 0)
    assert read_transfer_books(db, 101, 200).payments == 1
