"""The books are read from a file whether a service has it open or not, and a broken file is said to be one."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.ledger.ledgers import token
from toolserver.money.books.sql_books import EVER, list_transfers, read_books, read_tokens, read_tools
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
