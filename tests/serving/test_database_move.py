"""A ledger moves from a file to PostgreSQL: whole, once, and served from one place at any time."""

import sqlite3
from contextlib import asynccontextmanager, closing

import anyio.to_thread
import pytest
from pydantic import SecretStr

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from tests.postgres import run_sql, terms_of, url_of
from toolserver.clock import ManualClock, SystemClock
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.money.purchases.quotes import ADDRESS_MARK as ADDRESS
from toolserver.serving import database_move
from toolserver.serving.database_check import check_place
from toolserver.serving.database_move import cancel_move, move_database
from toolserver.serving.money import open_money
from toolserver.serving.shared_database import NotOnServer
from toolserver.settings import Settings
from toolserver.sql.backup import DatabaseInUse
from toolserver.sql.errors import StorageFailed
from toolserver.sql.high_water import HighWater, SharedMarks
from toolserver.sql.ledger_place import read_place
from toolserver.sql.move_mark import COPYING, LedgerMoved, MoveMark, read_move, write_move
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.postgres_move import MoveRefused, MoveTarget, MoveUnfinished
from toolserver.sql.seal_marks import SERVER_MARK, SealMark, note_seals

live = pytest.mark.live
NOWHERE = PostgresTerms("postgresql://127.0.0.1:9/none", connect_s=1, work_s=1)


def serving(folder, *, on_server=False, database=None):
    """The money of a service on a folder, or on the database beside it."""
    url = SecretStr(url_of(database or folder)) if on_server else None
    settings = Settings(data_dir=folder / "data", database_url=url)
    return open_money(settings, clock=ManualClock(START), base_url="https://data.example", service="data.example")


@pytest.fixture
async def folder(tmp_path):
    """A data directory with a ledger that sold: a token with 10 credits, two charges and one that was released."""
    async with serving(tmp_path) as money:
        await money.own.mint(token(1), 10, cause="bought")
        for number in (1, 2):
            await money.ledger.charge(f"c{number}", token(1), 3, endpoint="/x")
        await money.ledger.reserve("c3", token(1), 2, endpoint="/y", ttl_s=60)
        await money.ledger.settle("c3", no_charge="stale_data")
    HighWater(tmp_path / "data").raise_to(ADDRESS, 64)
    return tmp_path


def move(folder, **named):
    return anyio.to_thread.run_sync(lambda: move_database(folder / "data", terms_of(folder), **named))


@live
async def test_what_was_sold_is_sold_on_from_the_server_and_nowhere_else(folder):
    before = await check_place(folder / "data" / FILE)
    done = await move(folder)
    assert (done["ok"], done["resumed"], done["engine"]) == (True, False, "PostgreSQL")
    assert done["copied"] == sum(each["rows"] for each in done["tables"].values())
    same = ("issued", "charged", "held", "spendable", "transfers", "accounts", "log", "tables")
    assert {name: done[name] for name in same} == {name: before[name] for name in same}
    assert not (folder / "data" / FILE).exists()
    with closing(sqlite3.connect(done["kept"])) as db:
        assert db.execute("SELECT count(*) FROM reservation").fetchone() == (3,)

    with pytest.raises(LedgerMoved, match="set database_url"):
        async with serving(folder):
            pass
    async with serving(folder, on_server=True) as money:
        assert await money.ledger.balance(token(1)) == 4
        assert (await money.ledger.charge("c4", token(1), 4, endpoint="/x")).charged == 4
        assert (await money.ledger.charge("c1", token(1), 3, endpoint="/x")).replayed, "it was made in the file"
    assert await anyio.to_thread.run_sync(read_place, terms_of(folder), next_address) == 64
    marks = await anyio.to_thread.run_sync(SharedMarks(folder / "another", terms_of(folder)).read_all)
    assert marks["address"] == 64
    assert "rows" not in marks


@live
async def test_the_rows_that_were_moved_are_sealed_and_an_earlier_mark_of_another_database_is_forgotten(folder):
    data, terms = folder / "data", terms_of(folder, row_key=b"k" * 32, data_dir=folder / "data")
    note_seals(HighWater(data), SealMark(commits=900), name=SERVER_MARK)
    await anyio.to_thread.run_sync(move_database, data, terms)
    async with open_postgres(terms) as store:
        assert (await store.describe_sealing(), await store.find_rewritten()) == (None, [])
        await store.check_rows_at_start()
        await SqlLedger(store, SystemClock()).charge("c9", token(1), 1, endpoint="/x")
        assert await store.find_rewritten() == []
    run_sql("UPDATE account SET credits=credits+1 WHERE id=4", terms.url)
    async with open_postgres(terms) as store:
        assert await store.find_rewritten() == ["account 4 was changed"]
    with pytest.raises(MoveRefused, match="was already moved to "):
        await move(folder)


def next_address(db):
    return db.execute("SELECT next FROM deposit_number").fetchone()[0]


class Killed(Exception):
    """The process ends here."""


@asynccontextmanager
async def interrupted(folder):
    """Begin a move that dies after the first rows."""

    def die(done, rows):
        raise Killed

    with pytest.raises(Killed):
        await move(folder, report=die)
    yield


@live
async def test_a_move_that_was_interrupted_is_served_from_neither_place_and_goes_on(folder):
    async with interrupted(folder):
        with pytest.raises(LedgerMoved, match="run `toolserver db move` again"):
            async with serving(folder):
                pass
        with pytest.raises(MoveUnfinished):
            async with serving(folder.joinpath("other"), on_server=True, database=folder):
                pass
    done = await move(folder)
    assert (done["ok"], done["resumed"]) == (True, True)
    assert 0 < done["copied"] < sum(each["rows"] for each in done["tables"].values())
    async with serving(folder, on_server=True) as money:
        assert await money.ledger.balance(token(1)) == 4


@live
async def test_one_that_died_after_the_server_had_all_only_says_so_in_the_folder(folder, monkeypatch):
    def die(*given):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(database_move, "_leave", die)
        with pytest.raises(Killed):
            await move(folder)
    assert read_move(folder / "data").state == COPYING
    done = await move(folder)
    assert (done["resumed"], done["copied"]) == (True, 0)
    assert not (folder / "data" / FILE).exists()


@live
async def test_a_move_that_was_cancelled_leaves_the_file_as_it_was(folder):
    async with interrupted(folder):
        said = await anyio.to_thread.run_sync(cancel_move, folder / "data")
    assert "cancelled" in said
    async with serving(folder) as money:
        assert await money.ledger.balance(token(1)) == 4
    with pytest.raises(MoveRefused, match="has the ledger of another move"):
        await move(folder)
    async with serving(folder) as money:
        assert await money.ledger.balance(token(1)) == 4, "a refused move closes nothing"


@live
async def test_nothing_is_cancelled_where_nothing_began_or_all_is_moved(folder):
    with pytest.raises(MoveRefused, match="no move"):
        cancel_move(folder / "data")
    await move(folder)
    with pytest.raises(MoveRefused, match="is served from there"):
        cancel_move(folder / "data")


@live
async def test_a_copy_that_differs_is_not_served_and_the_file_stays(folder, monkeypatch):
    counters = MoveTarget.set_counters

    def rewrite(target, address):
        counters(target, address)
        run_sql("UPDATE token SET issued_at = issued_at + 1", url_of(folder))

    monkeypatch.setattr(MoveTarget, "set_counters", rewrite)
    with pytest.raises(
        MoveRefused,
        match="the copy differs from the ledger and is not served: token: 1 rows, but with different contents",
    ):
        await move(folder)
    assert (folder / "data" / FILE).exists()
    with pytest.raises(MoveUnfinished):
        async with serving(folder.joinpath("other"), on_server=True, database=folder):
            pass


@live
async def test_a_service_that_runs_is_not_moved_under(folder):
    async with serving(folder) as money:
        with pytest.raises(DatabaseInUse, match="stop the service first"):
            await move(folder)
        assert await money.ledger.balance(token(1)) == 4
    assert read_move(folder / "data") is None


@live
async def test_rows_that_somebody_else_wrote_are_not_moved(folder):
    with closing(sqlite3.connect(folder / "data" / FILE)) as db, db:
        db.execute("UPDATE token SET issued_at = 5")
    with pytest.raises(MoveRefused, match="is not sound, so it is not moved: every row was written by this service"):
        await move(folder)
    assert read_move(folder / "data") is None


@live
async def test_a_server_that_is_not_there_leaves_the_file_served(folder):
    with pytest.raises(StorageFailed):
        await anyio.to_thread.run_sync(move_database, folder / "data", NOWHERE)
    async with serving(folder) as money:
        assert await money.ledger.balance(token(1)) == 4


def test_a_folder_without_a_ledger_has_nothing_to_move(tmp_path):
    with pytest.raises(MoveRefused, match="there is no ledger in"):
        move_database(tmp_path, NOWHERE)
    with pytest.raises(MoveRefused, match="no move of the ledger"):
        cancel_move(tmp_path)


def test_a_ledger_that_was_moved_is_not_moved_again(tmp_path):
    write_move(tmp_path, MoveMark.begin(NOWHERE.url).complete())
    with pytest.raises(MoveRefused, match=r"was already moved to postgresql://127\.0\.0\.1:9/none"):
        move_database(tmp_path, NOWHERE)
    with pytest.raises(MoveRefused, match="is served from there"):
        cancel_move(tmp_path)


async def test_without_a_server_a_service_that_runs_is_seen_first(folder):
    async with serving(folder):
        with pytest.raises(DatabaseInUse, match="stop the service first"):
            await anyio.to_thread.run_sync(move_database, folder / "data", NOWHERE)


@live
async def test_an_empty_database_beside_the_marks_of_a_ledger_is_refused(folder):
    (folder / "data" / FILE).unlink()
    with pytest.raises(NotOnServer, match="the database is empty: restore the database, or move the ledger"):
        async with serving(folder, on_server=True):
            pass
