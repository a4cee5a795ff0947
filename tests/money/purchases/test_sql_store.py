"""What only the store in SQLite can show: a whole transaction or none of it, and files read from outside."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.money.ledger.ledgers import opened_file
from tests.money.purchases.parts import NOW, TX, block_hash
from tests.money.purchases.test_store import MS, US, credit, opened
from tests.money.purchases.test_transfer_authorization import ONE, PAYER
from tests.postgres import POSTGRES
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.listing import ListedPurchase
from toolserver.money.purchases.records import UnappliedPayment
from toolserver.money.purchases.sql_sweeps import record_moved, record_sending, sum_swept
from toolserver.money.purchases.store import read_cases, read_deposits, read_purchases
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


async def test_a_credit_is_written_with_everything_that_a_dispute_needs(tmp_path):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit(finality="safe", late=True, memo_public=True))
    row = rows(tmp_path, "SELECT chain_id, block_number, block_hash, block_time, logs, finality FROM tx_credit")
    assert row == [(8453, 100, block_hash(100), (NOW + 60) * 1000, json.dumps([0]), "safe")]
    assert rows(tmp_path, "SELECT late, memo_public, credited_at, final_at FROM tx_credit") == [(1, 1, MS, None)]


async def test_a_reversal_is_written_with_the_block_that_is_gone(tmp_path):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit())
        await kept.store.reverse_credit(TX, MS + 1)
    columns = "tx_hash, purchase, block_number, block_hash, amount, credits, taken_back, lost, at"
    written = (TX, 1, 100, block_hash(100), 5_000_000, 250, 250, 0, MS + 1)
    assert rows(tmp_path, f"SELECT {columns} FROM tx_reversal") == [written]
    assert rows(tmp_path, "SELECT count(*) FROM tx_credit") == [(0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM purchase",
        "UPDATE purchase SET address=randomblob(20)",
        "UPDATE purchase SET memo_hash=randomblob(32)",
        "UPDATE purchase SET credits=credits+1",
        "UPDATE purchase SET hd_index=NULL",
        "DELETE FROM tx_reversal",
        "UPDATE tx_reversal SET lost=1",
    ],
)
async def test_addresses_and_reversals_are_kept_for_ever(tmp_path, sql):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit())
        await kept.store.reverse_credit(TX, MS)
    with pytest.raises(sqlite3.IntegrityError, match=r"never|keeps"):
        rows(tmp_path, sql)


def rows(folder, sql):
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        return db.execute(sql).fetchall()


@pytest.fixture
async def file(tmp_path):
    """A ledger's file with one quote aside, one unpaid and one paid."""
    async with opened("sqlite", tmp_path) as kept:
        for number in range(3):
            await kept.quote(number, address=bytes([number]) * 20, expires_at=MS + number)
        await kept.store.credit_transfer(credit(3))
        assert await kept.store.put_quotes_aside(MS + 1, 9) == 1
    return tmp_path / FILE


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM old_quote",
        "UPDATE old_quote SET amount=1",
        "DELETE FROM purchase WHERE state='quoted'",
        "DELETE FROM purchase WHERE state='credited'",
        "INSERT INTO old_quote SELECT memo_hash, id, randomblob(20), hd_index, amount, credits, challenge, created_at,"
        " expires_at FROM purchase WHERE state='quoted'; DELETE FROM purchase WHERE state='quoted'",
    ],
)
async def test_a_quote_leaves_neither_table_but_for_the_other(file, sql):
    with (
        closing(sqlite3.connect(file)) as db,
        db,
        pytest.raises(sqlite3.IntegrityError, match=r"never deleted|keeps its terms"),
    ):
        db.executescript(f"BEGIN; {sql}; COMMIT")


async def test_what_was_put_aside_is_searched_by_an_index(file):
    with closing(sqlite3.connect(file)) as db, db:
        for sql, index in (
            ("SELECT 1 FROM old_quote WHERE memo_hash=x'00'", "PRIMARY KEY"),
            (
                "SELECT 1 FROM purchase WHERE state='quoted' AND expires_at<1 ORDER BY expires_at LIMIT 5",
                "purchase_unpaid",
            ),
        ):
            assert index in str(db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall())


BOTH = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
TWO = ONE._replace(nonce=bytes(32), amount=5)


@BOTH
async def test_a_sweep_counts_when_the_chain_has_it_and_once(kind, tmp_path):
    async with opened_file(kind, tmp_path) as file:
        await record_sending(file, ONE, bytes([1]) * 32, 10)
        assert await file.apart(sum_swept) == {}
        await record_sending(file, ONE, bytes([2]) * 32, 20)
        for one, tx in ((ONE, None), (TWO, None)):
            await record_sending(file, one, tx, 30)
            await record_moved(file, one, 40)
            await record_moved(file, one, 50)
        rows = await file.read(lambda db: db.execute("SELECT amount, tx_hash, begun_at, done_at FROM sweep").fetchall())
        assert sorted(rows) == [(5, None, 30, 40), (7, bytes([2]) * 32, 10, 40)]
        assert await file.apart(sum_swept) == {PAYER: 12}


@BOTH
@pytest.mark.parametrize("sql", ["DELETE FROM sweep", "UPDATE sweep SET amount=1", "UPDATE sweep SET done_at=1"])
async def test_what_was_moved_is_not_rewritten(kind, tmp_path, sql):
    async with opened_file(kind, tmp_path) as file:
        await record_sending(file, ONE, None, 10)
        await record_moved(file, ONE, 40)
        with pytest.raises((StorageFailed, sqlite3.IntegrityError)):
            await file.alone(lambda db: db.execute(sql) and None)
