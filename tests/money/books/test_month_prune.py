"""Rows leave once their archive proved them: nothing else does, no sum changes, and whoever dies is gone on for."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import anyio
import pytest

from tests.money.books.months import (
    BUYER,
    CHILD,
    DAY,
    FEBRUARY,
    JANUARY,
    MARCH,
    OTHER,
    closer_of,
    ms,
    opened_seller,
    place_of,
    sell_three_months,
)
from tests.postgres import POSTGRES
from toolserver.core.caller import token_hash
from toolserver.money.books import months
from toolserver.money.books.month_archive import ArchiveBroken, name_archive
from toolserver.money.books.month_proof import prove_month
from toolserver.money.books.months import MonthPruner
from toolserver.money.books.sql_books import read_books, read_tokens
from toolserver.money.books.sql_months import RECEIPTS_WITH_NUMBERS, MonthRefused, list_closed
from toolserver.money.books.sql_reconciliation import check_books
from toolserver.money.ledger.sql_books import RowsRemoved
from toolserver.money.ledger.sql_invariants import read_totals
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.sql_store import read_receipts
from toolserver.money.receipts.transparency_log import read_mark
from toolserver.sql.connection import is_shared
from toolserver.sql.high_water import HighWater
from toolserver.sql.ledger_place import open_place, read_place

NOW = ms("2027-06-02")  # January and February are older than three whole months, and than 90 days
BIG = ("transfer", "reservation", "packed_receipt", "uncharged_call")
both = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])


@pytest.fixture
async def closed(kind, tmp_path):
    await sell_three_months(kind, tmp_path)
    await closer_of(kind, tmp_path).close_until(FEBRUARY, NOW)
    return tmp_path


def prune(kind, folder, now=NOW, keep=3):
    closer = closer_of(kind, folder)
    pruner = MonthPruner(closer.place, closer.folder, closer.ring)
    return anyio.to_thread.run_sync(pruner.prune, keep, now)


def read(kind, folder, job):
    return anyio.to_thread.run_sync(read_place, place_of(kind, folder), job)


def count_rows(db):
    return {table: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in BIG}


async def find_differences(kind, folder):
    """Everything that `books check` finds."""
    place, keys = place_of(kind, folder), closer_of(kind, folder).ring.keys
    async with open_place(place) as file:
        found = await check_books(file, place, read_mark(HighWater(folder)), NOW, None, keys)
    return {one.name: one.differences for one in found if one.differences}


async def read_books_of(kind, folder):
    """The books of the three months."""
    place, spans = place_of(kind, folder), (JANUARY, FEBRUARY, MARCH)
    return [await anyio.to_thread.run_sync(read_books, place, span.since, span.until) for span in spans]


@both
async def test_calls_of_released_months_leave_and_nothing_adds_up_to_something_else(kind, closed):
    totals, books = await read(kind, closed, read_totals), await read_books_of(kind, closed)
    assert await find_differences(kind, closed) == {}

    found = await prune(kind, closed)

    assert found == {"released": ["2027-01", "2027-02"], "before": "2027-03",
                     "rows": {"calls": 20, "receipts": 7, "uncharged": 2}}  # fmt: skip
    assert await read(kind, closed, count_rows) == {
        "transfer": 3, "reservation": 1, "packed_receipt": 1, "uncharged_call": 0,
    }  # fmt: skip
    assert await find_differences(kind, closed) == {}
    assert await read(kind, closed, read_totals) == totals
    assert await read_books_of(kind, closed) == books


@both
async def test_a_second_run_removes_nothing_and_the_next_month_is_closed_after_it(kind, closed):
    await prune(kind, closed)
    assert (await prune(kind, closed))["rows"] == {"calls": 0, "receipts": 0, "uncharged": 0}

    (march,) = await closer_of(kind, closed).close_until(MARCH, NOW)
    assert march.problems == []
    assert march.signed.statement.credits["owed"] == 91
    assert (await prune(kind, closed, now=ms("2027-08-01")))["released"] == ["2027-03"]
    assert await find_differences(kind, closed) == {}


@both
async def test_statements_end_with_what_the_removed_calls_came_to(kind, closed):
    await prune(kind, closed)
    async with opened_seller(kind, closed, "2027-06-02T00:00:00") as seller:
        pages = [await seller.ledger.statement(who, StatementQuery()) for who in (BUYER, CHILD, OTHER)]
        part = await seller.ledger.statement(BUYER, StatementQuery(since=MARCH.since))
        first = await seller.ledger.statement(BUYER, StatementQuery(limit=1))
    entries = [[(entry.kind, entry.credits) for entry in page.entries] for page in pages]
    assert entries == [
        [("credit", 100), ("earlier_calls", -13)], [("earlier_calls", -3)], [("call", -6), ("grant", 10)],
    ]  # fmt: skip
    assert (pages[0].credits, pages[0].entries[-1].at) == (87, MARCH.since - 1)
    assert (part.entries, len(first.entries), first.next_before is None) == ([], 1, False)


@both
async def test_what_is_young_or_was_not_closed_stays(kind, closed):
    before = await read(kind, closed, count_rows)
    for now, keep in ((ms("2027-06-02"), 5), (JANUARY.until + 90 * DAY - 1, 3), (ms("2027-05-01") - 1, 3)):
        assert (await prune(kind, closed, now, keep))["released"] == []
    assert await read(kind, closed, count_rows) == before
    assert (await prune(kind, closed, ms("2027-05-02")))["released"] == ["2027-01"]
    assert (await prune(kind, closed, ms("2029-05-02")))["released"] == ["2027-02"]  # March was never closed
    assert (await read(kind, closed, count_rows))["reservation"] == 1


@both
async def test_without_an_archive_that_proves_the_rows_nothing_leaves(kind, closed):
    before = await read(kind, closed, count_rows)
    path = name_archive(closed / "archive", "2027-01")
    whole, other = path.read_bytes(), name_archive(closed / "archive", "2027-02").read_bytes()
    for content, failure in ((whole[:-20], ArchiveBroken), (other, MonthRefused), (None, OSError)):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises((failure, ArchiveBroken)):
            await prune(kind, closed)
        path.write_bytes(whole)
    async with opened_seller(kind, closed, "2027-01-20T00:00:00") as seller:
        await seller.sell()  # a clock that is months behind
    with pytest.raises(MonthRefused, match="those of transfer differ from its archive"):
        await prune(kind, closed)
    assert "a closed month keeps its transfers" in str(await find_differences(kind, closed))
    after = await read(kind, closed, count_rows)
    assert after == before | {"transfer": before["transfer"] + 1, "reservation": before["reservation"] + 1,
                              "packed_receipt": before["packed_receipt"] + 1}  # fmt: skip


FORGED = {
    "transfer": "UPDATE transfer SET at = at + 1 WHERE seq = (SELECT min(seq) FROM transfer)",
    "receipt": "UPDATE packed_receipt SET signature = x'00'",
    "uncharged_call": "UPDATE uncharged_call SET at = at + 1 WHERE seq = (SELECT min(seq) FROM uncharged_call)",
}


@both
@pytest.mark.parametrize("table", FORGED)
async def test_rows_of_a_closed_month_that_were_rewritten_are_named(kind, closed, table):
    def rewrite(db):
        if is_shared(db):
            db.run_script(f"ALTER TABLE {'packed_receipt' if table == 'receipt' else table} DISABLE TRIGGER USER")
            db.execute(FORGED[table].replace("x'00'", "'\\x00'::bytea"))
        else:
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
                db.execute(f"DROP TRIGGER {name}")
            db.execute(FORGED[table])

    async with open_place(place_of(kind, closed)) as store:
        await store.alone(rewrite)
    found = await find_differences(kind, closed)
    assert f"2027-01: the rows of {table} are not those that were signed" in found["months"]


@both
async def test_a_month_that_an_earlier_version_closed_is_proved_and_pruned(kind, tmp_path, monkeypatch):
    """Its receipts were stored whole, in a table with numbers."""
    await sell_three_months(kind, tmp_path)
    async with open_place(place_of(kind, tmp_path)) as store:
        await store.alone(store_as_before)
    with monkeypatch.context() as before:
        for name in ("columns_of", "read_rows"):
            job = getattr(months, name)
            before.setattr(months, name, lambda *given, job=job: job(*map(_name_before, given)))
        await closer_of(kind, tmp_path).close_until(FEBRUARY, NOW)
    facts = prove_month(name_archive(tmp_path / "archive", "2027-01"), closer_of(kind, tmp_path).ring.find)
    assert (facts.problems, facts.signed.statement.tables["receipt"].rows) == ([], 6)
    assert await find_differences(kind, tmp_path) == {}

    assert (await prune(kind, tmp_path))["rows"]["receipts"] == 7
    assert await find_differences(kind, tmp_path) == {}


def _name_before(value):
    return RECEIPTS_WITH_NUMBERS if value == "receipt" else value


def store_as_before(db):
    """Store the receipts as versions before 0029 did."""
    receipts = sorted(read_receipts(db), key=lambda receipt: receipt.at)
    db.execute("DELETE FROM packed_receipt")
    for receipt in receipts:
        db.execute("INSERT INTO receipt(id, owner, core, key, signature, at) VALUES(?,?,?,?,?,?)", receipt)


@both
async def test_another_archive_of_the_same_rows_is_not_the_one_that_was_signed(kind, closed):
    other = replace(closer_of(kind, closed), folder=closed / "other")
    (closed / "other").mkdir()
    with pytest.raises(MonthRefused, match="does not follow"):
        await other.close_month(JANUARY, None, NOW + 1)
    name_archive(closed / "other", "2027-01").replace(name_archive(closed / "archive", "2027-01"))
    with pytest.raises(MonthRefused, match="it belongs to another statement"):
        await prune(kind, closed)


@both
async def test_a_receipt_that_was_signed_after_its_call_left_the_ledger_is_no_difference(kind, tmp_path):
    async with opened_seller(kind, tmp_path, "2027-01-31T23:59:59") as seller:
        await seller.ledger.mint(BUYER, 100, cause="one")
        await seller.sell(signed_at="2027-02-01T00:00:01")
        await seller.sell()
    await closer_of(kind, tmp_path).close_until(JANUARY, NOW)
    await prune(kind, tmp_path)
    assert {**await read(kind, tmp_path, count_rows), "transfer": 0} == {
        "transfer": 0, "reservation": 1, "packed_receipt": 2, "uncharged_call": 0,
    }  # fmt: skip
    assert await find_differences(kind, tmp_path) == {}


@both
@pytest.mark.slow("it dies at each of nine steps")
@pytest.mark.parametrize("step", range(9))
async def test_who_dies_at_any_step_is_gone_on_for(kind, closed, step, monkeypatch):
    class Killed(BaseException):
        """The process is gone."""

    done, real = [], months.open_maintenance

    def open_mortal(place):
        opened = real(place)

        class Mortal:
            def __enter__(self):
                transact = opened.__enter__()

                def die_later(job):
                    def last(db):
                        result = job(db)
                        if len(done) == step:
                            raise Killed  # before it is committed
                        done.append(job)
                        return result

                    return transact(last)

                return die_later

            def __exit__(self, *raised):
                return opened.__exit__(*raised)

        return Mortal()

    with monkeypatch.context() as patch:
        patch.setattr(months, "open_maintenance", open_mortal)
        patch.setattr(months, "SIZES", (3, 3))
        with pytest.raises(Killed):
            await prune(kind, closed)
    assert await find_differences(kind, closed) == {}

    await prune(kind, closed)
    assert await find_differences(kind, closed) == {}
    assert (await read(kind, closed, count_rows))["reservation"] == 1


@both
async def test_a_call_that_is_not_over_stays_whole(kind, tmp_path):
    async with opened_seller(kind, tmp_path, "2027-01-15T08:00:00") as seller:
        await seller.ledger.mint(BUYER, 100, cause="one")
        old = [await seller.sell() for _ in range(3)]
        await seller.ledger.reserve("open", BUYER, 4, endpoint="/x", ttl_s=1e9)
        seller.go_to("2027-02-02T00:00:00")
        await seller.ledger.settle(old[0], no_charge="delivery_failed")
    await closer_of(kind, tmp_path).close_until(JANUARY, NOW)
    await prune(kind, tmp_path)

    def calls(db):
        return [call for (call,) in db.execute("SELECT call_id FROM reservation ORDER BY call_id")]

    assert await read(kind, tmp_path, calls) == sorted([old[0], "open"])
    assert (await find_differences(kind, tmp_path)).keys() <= {"receipts"}
    async with opened_seller(kind, tmp_path, "2027-06-02T00:00:00") as seller:
        await seller.ledger.settle("open", no_charge=None)
        assert await seller.ledger.balance(BUYER) == 100 - 4 - 4


async def test_rows_of_calls_leave_a_file_only_when_their_month_was_released(tmp_path):
    await sell_three_months("sqlite", tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        for sql in ("DELETE FROM transfer WHERE credit=2", "DELETE FROM reservation", "DELETE FROM uncharged_call"):
            with pytest.raises(sqlite3.IntegrityError, match="is never deleted"):
                db.execute(sql)
    await closer_of("sqlite", tmp_path).close_until(FEBRUARY, NOW)
    await prune("sqlite", tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        for sql in (
            "DELETE FROM transfer WHERE debit=1",
            "DELETE FROM transfer WHERE credit=2",
            "DELETE FROM reservation",
            "DELETE FROM removed_calls",
            "UPDATE removed_calls SET debits=debits+1",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(sql)


async def test_what_is_removed_without_a_count_is_found(tmp_path):
    await sell_three_months("sqlite", tmp_path)
    await closer_of("sqlite", tmp_path).close_until(FEBRUARY, NOW)
    await prune("sqlite", tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("DROP TRIGGER removed_calls_only_grow")
        db.execute("UPDATE removed_calls SET debits=debits-1 WHERE allowance=''")
        db.commit()
    found = await find_differences("sqlite", tmp_path)
    assert {"ledger", "statements", "books"} <= found.keys()
    assert any("removed_calls" in text for text in found["ledger"])


async def test_the_last_transfer_of_a_file_stays_so_that_its_number_is_not_given_out_again(tmp_path):
    async with opened_seller("sqlite", tmp_path, "2027-01-15T08:00:00") as seller:
        await seller.ledger.mint(BUYER, 100, cause="one")
        for _ in range(3):
            await seller.sell()
    await closer_of("sqlite", tmp_path).close_until(JANUARY, NOW)
    await prune("sqlite", tmp_path)
    async with opened_seller("sqlite", tmp_path, "2027-06-02T00:00:00") as seller:
        await seller.sell()
    assert await find_differences("sqlite", tmp_path) == {}


@both
async def test_figures_of_removed_months_come_from_their_statements_and_others_say_where_they_are(kind, closed):
    await prune(kind, closed)
    place = place_of(kind, closed)
    january = await anyio.to_thread.run_sync(read_books, place, JANUARY.since, JANUARY.until)
    assert (january["credits"]["used"], january["credits"]["owed_now"], january["agrees"]) == (14, 91, True)
    for span in ((JANUARY.since, JANUARY.since + DAY), (JANUARY.since, MARCH.until)):
        with pytest.raises(RowsRemoved, match="calls before 2027-03-01 were archived"):
            await anyio.to_thread.run_sync(read_books, place, *span)
    with pytest.raises(RowsRemoved):
        await anyio.to_thread.run_sync(read_tokens, place, JANUARY.since, JANUARY.until)
    (march,) = await anyio.to_thread.run_sync(read_tokens, place, MARCH.since, MARCH.until)
    assert march.fingerprint == token_hash(OTHER).hex()[:16]
    assert [month.released_at for month in await read(kind, closed, list_closed)] == [NOW, NOW]
