"""The books are read from a file whether a service has it open or not, and a broken file is said to be one."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.ledger.ledgers import token
from tests.quick_files import migrate_copied
from toolserver.money.books.sql_books import (
    EVER,
    list_transfers,
    read_books,
    read_signed_payment_books,
    read_tokens,
    read_tools,
    read_transfer_books,
    read_usdc,
    show_usdc,
)
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.sql.errors import StorageFailed


async def test_books_are_read_while_the_ledger_is_open(tmp_path):
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(token(1), 10, cause="grant:1")
        await ledger.charge("call-1", token(1), 3, endpoint="/x")
        found = read_books(tmp_path / FILE, 0, EVER)
        listed = list(list_transfers(tmp_path / FILE, 0, EVER))

        assert (found["credits"]["granted"], found["credits"]["used"], found["credits"]["owed"]) == (10, 3, 7)
        assert found["agrees"] is True
        assert found["usdc"]["received_usd"] == "0.000000"
        assert [(t.credits, t.call_id) for t in listed] == [(10, None), (-3, "call-1")]
        assert [row.credits for row in read_tools(tmp_path / FILE, 0, EVER)] == [3]
        assert [row.owed_now for row in read_tokens(tmp_path / FILE, 0, EVER)] == [7]


async def test_balances_that_the_transfers_do_not_add_up_to_are_a_problem(tmp_path):
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(token(1), 10, cause="grant:1")
    with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        db.execute("UPDATE account SET credits = credits + 1 WHERE kind = 'token'")
    books = read_books(tmp_path / FILE, 0, EVER)
    assert books["agrees"] is False
    assert books["problems"] == ["owed now: 10 credits by the transfers, but 11 by the accounts"]


@pytest.mark.parametrize("read", [read_books, read_tools, read_tokens, lambda *span: list(list_transfers(*span))])
def test_a_file_that_is_no_database_is_said_to_be_one(tmp_path, read):
    (tmp_path / FILE).write_text("no database", encoding="utf-8")
    with pytest.raises(StorageFailed):
        read(tmp_path / FILE, 0, EVER)


HASH, OTHER = b"\x01" * 32, b"\x02" * 32


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
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


ROWS = [("topup new", 250, 5_000_000), ("topup new", None, 1_000_000), ("GET /api/pro/macro x", None, 40_000)]


def test_each_payment_is_a_topup_a_call_or_a_case():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
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

        counted = (1, 5_000_000, 250, 1, 40_000, 1, 1_000_000)
        assert tuple(read_signed_payment_books(db, 100, 101)) == (*counted, 0, 0, 0, 0)
        assert tuple(read_signed_payment_books(db, 0, 100)) == (0,) * 11


def usdc_of(db, since):
    return show_usdc(read_transfer_books(db, since, EVER), read_signed_payment_books(db, since, EVER))


def test_a_topup_by_signature_that_the_chain_undid_is_not_received(db):
    key = bytes([7]) * 32
    row = (key, key[:20], key, 2_000_000, "topup new", key, "a" * 64, 100)
    sql = """INSERT INTO x402_payment(payload, authorizer, nonce, amount, request, state, tx_hash, token, credits,
      valid_before, begun_at, settled_at) VALUES (?,?,?,?,?,'settled',?,?,?,9,90,100)"""
    db.execute(sql, row)
    received = usdc_of(db, 0)["received_usd"]
    db.execute("INSERT INTO x402_confirmation(payload, undone_at, taken_back, lost) VALUES (?, 230, 70, 30)", (key,))
    usdc = usdc_of(db, 0)
    assert (received, usdc["received_usd"]) == ("10.000000", "8.000000")  # 10 by transfer, 3 unapplied, 5 undone
    undone = {"payments": 2, "usd": "7.000000", "credits_taken_back": 270, "credits_lost": 80}
    assert usdc["undone_on_chain"] == undone
    assert read_usdc(db, 0, EVER)["undone_on_chain"] == 7_000_000
    assert usdc_of(db, 225)["received_usd"] == "-2.000000"  # it had come in an earlier span
