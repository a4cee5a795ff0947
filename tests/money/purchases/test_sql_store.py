"""What only the store in SQLite can show: a whole transaction or none of it, and files read from outside."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.purchases.parts import TX
from tests.money.purchases.test_store import MS, US, credit, opened
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.listing import ListedPurchase
from toolserver.money.purchases.records import UnappliedPayment
from toolserver.money.purchases.sql_store import read_cases, read_deposits, read_purchases
from toolserver.sql.errors import StorageFailed


@pytest.mark.parametrize("table", ["tx_credit", "unapplied_payment", "token", "transfer"])
async def test_a_credit_that_breaks_half_way_leaves_nothing(tmp_path, table):
    async with opened("sqlite", tmp_path) as kept:
        memo = await kept.quote()
        with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
            db.execute(f"CREATE TRIGGER broken BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'broken'); END")
        with pytest.raises(StorageFailed):
            await kept.store.credit_transfer(credit(usd=7)._replace(paid=credit(usd=7).paid._replace(indexes=(9,))))
        assert (await kept.store.find_purchase(memo)).state == "quoted"
        with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
            db.execute("DROP TRIGGER broken")
            counts = (
                "SELECT (SELECT count(*) FROM token), (SELECT count(*) FROM transfer), (SELECT count(*) FROM tx_credit)"
            )
            assert db.execute(counts).fetchone() == (0, 0, 0)
        assert await kept.store.credit_transfer(credit()) == 250


async def test_what_was_written_is_there_when_the_file_is_opened_again(tmp_path):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit())
        before = await kept.store.find_credit(1)
    async with opened("sqlite", tmp_path) as kept:
        assert await kept.store.find_credit(1) == before


async def test_a_file_is_read_from_outside_while_it_is_open(tmp_path):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.record_unapplied(UnappliedPayment(TX, 1, 7, "late", MS))
        path = tmp_path / FILE
        assert read_purchases(path, "quoted", 9) == [
            ListedPurchase(1, "quoted", 5_000_000, 250, US, MS, MS + 1800_000, None)
        ]
        assert read_purchases(path, "credited", 9) == []
        assert [case.amount for case in read_cases(path)] == [7]
        assert read_deposits(path) == [(0, US)]


def test_a_file_that_is_no_database_is_an_error_of_ours(tmp_path):
    path = tmp_path / FILE
    path.write_text("nothing that SQLite wrote, and long enough to have a header" * 9)
    for read in (lambda: read_purchases(path, None, 9), lambda: read_cases(path), lambda: read_deposits(path)):
        with pytest.raises(StorageFailed, match="not a database"):
            read()
