"""The USDC of signed payments: top-ups, calls, and top-ups that wait for a person."""

import sqlite3
from contextlib import closing

from toolserver.money.x402.sql_books import read_signed_payment_books
from toolserver.sql.migrate import migrate

ROWS = [("topup new", 250, 5_000_000), ("topup new", None, 1_000_000), ("GET /api/pro/macro x", None, 40_000)]


def test_each_payment_is_a_topup_a_call_or_a_case():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        db.execute("INSERT INTO account(id, kind) VALUES (4, 'token')")
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?, 4, 'acct_1', 0)", ("a" * 64,))
        for number, (request, credits, amount) in enumerate(ROWS):
            key = number.to_bytes(32, "big")
            row = (key, key[:20], key, amount, request, key, "a" * 64 if credits else None, credits)
            db.execute(
                """INSERT INTO x402_payment(payload, authorizer, nonce, amount, request, state, tx_hash, token, credits,
                valid_before, begun_at, settled_at) VALUES (?,?,?,?,?,'settled',?,?,?,9,90,100)""",
                row,
            )

        assert tuple(read_signed_payment_books(db, 100, 101)) == (1, 5_000_000, 250, 1, 40_000, 1, 1_000_000)
        assert tuple(read_signed_payment_books(db, 0, 100)) == (0,) * 7
