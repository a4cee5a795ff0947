"""A ledger goes from a server to a file: whole, sealed, once, and on after a kill."""

import time
from contextlib import closing

import anyio.to_thread
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from tests.postgres import terms_of
from tests.size import sized
from tests.sql.upgrades.matrix import make_server, read_old
from toolserver.clock import ManualClock
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.money.purchases.quotes import ADDRESS_MARK
from toolserver.serving.database_check import check_place
from toolserver.serving.database_return import cancel_return, return_database
from toolserver.serving.money import MARKER
from toolserver.sql import postgres_move
from toolserver.sql.errors import OtherWorld
from toolserver.sql.high_water import HighWater
from toolserver.sql.ledger_place import open_place, read_place
from toolserver.sql.move_mark import LedgerMoved, require_not_moved
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_move import MOVE_LOCK, MoveRefused, MoveUnfinished, require_whole

pytestmark = pytest.mark.live
OLD = read_old("f47ee7d3")


def make(folder):
    """A database with a ledger, and the data directory to which it goes."""
    terms = terms_of(folder)
    make_server(OLD, terms)
    data = folder / "data"
    data.mkdir(parents=True)
    (data / MARKER).touch()
    with closing(PostgresConnection(terms)) as db:
        db.execute("INSERT INTO installation(one, simulated) VALUES(1, 1) ON CONFLICT DO NOTHING")
        db.execute("INSERT INTO deposit_number VALUES(1, 128)")
    return terms, data


def require_unserved(terms, data):
    """Nothing is served meanwhile, from either place."""
    with pytest.raises(MoveUnfinished):
        read_place(terms, require_whole)
    with pytest.raises(LedgerMoved):
        require_not_moved(data)


async def test_the_file_is_the_same_ledger_and_sells_and_the_database_does_not(tmp_path):
    terms, data = await anyio.to_thread.run_sync(make, tmp_path)
    moved = await anyio.to_thread.run_sync(return_database, data, terms)
    verdict = await check_place(data / FILE)
    assert verdict["ok"] is True
    assert {name: verdict[name] for name in OLD.facts} == OLD.facts
    assert moved["tables"] == verdict["tables"]
    assert verdict["tables"]["webhook_subscription"]["rows"] == 2
    assert HighWater(data).read(ADDRESS_MARK) == 128
    require_not_moved(data)
    with pytest.raises(MoveUnfinished, match="was moved to a file"):
        await anyio.to_thread.run_sync(read_place, terms, require_whole)
    async with open_place(data / FILE) as file:
        await file.check_rows()
        ledger = SqlLedger(file, ManualClock(START))
        await ledger.mint(token(1), 5, cause="later")
        await ledger.reserve("a call", token(1), 1, endpoint="/x", ttl_s=60)
        assert (await ledger.settle("a call", no_charge=None)).charged == 1
        assert await ledger.check() == []
    with pytest.raises(MoveRefused, match="has a ledger"):
        await anyio.to_thread.run_sync(return_database, data, terms)


class Killed(BaseException):
    """Nothing is done after it."""


def die_before(monkeypatch, number):
    """Let the process die before so many statements on the server. Returns a list with the count of statements."""
    count, execute = [0], PostgresConnection.execute

    def counted(self, sql, parameters=(), /):
        count[0] += 1
        if count[0] > number:
            raise Killed
        return execute(self, sql, parameters)

    monkeypatch.setattr(PostgresConnection, "execute", counted)
    return count


def test_after_a_kill_at_any_statement_it_goes_on_and_neither_place_is_served_meanwhile(tmp_path, monkeypatch):
    terms, data = make(tmp_path)
    with monkeypatch.context() as patched:
        counted = die_before(patched, 10**9)
        return_database(data, terms)
    total, unserved = counted[0], 0
    for left in range(1, total, sized(total // 8, fast=total // 4, long=3)):
        terms, data = make(tmp_path / str(left))
        with monkeypatch.context() as patched:
            die_before(patched, left)
            with pytest.raises(Killed):
                return_database(data, terms)
        if (data / FILE).exists() or (data / f"{FILE}.returning").exists():
            require_unserved(terms, data)
            unserved += 1
        return_database(data, terms)
        with closing(PostgresConnection(terms)) as db, pytest.raises(MoveUnfinished):
            require_whole(db)
        require_not_moved(data)
        assert (data / FILE).exists()
    assert unserved > 0


def test_what_a_killed_process_held_is_waited_for_until_the_server_knows_that_it_is_gone(tmp_path, monkeypatch):
    terms, data = make(tmp_path)
    killed = PostgresConnection(terms)
    killed.execute("SELECT pg_advisory_lock(?)", (MOVE_LOCK,))
    looks, sleep = [], time.sleep

    def look_again(seconds):
        looks.append(seconds)
        killed.close()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", look_again)
    return_database(data, terms)
    assert looks, "its lock and its connection were still there"


def test_a_return_is_refused_while_a_service_is_connected_and_can_be_cancelled(tmp_path, monkeypatch):
    monkeypatch.setattr(postgres_move, "GONE_S", 0.2)
    terms, data = make(tmp_path)
    with closing(PostgresConnection(terms)) as service:
        service.connect()
        with pytest.raises(MoveRefused, match="stop every instance first"):
            return_database(data, terms)
    read_place(terms, require_whole)
    require_not_moved(data)
    (data / MARKER).unlink()
    with pytest.raises(OtherWorld):
        return_database(data, terms)
    with pytest.raises(MoveRefused, match="no move of a ledger"):
        cancel_return(data, terms)
    read_place(terms, require_whole)


def test_an_interrupted_return_can_be_cancelled_and_the_database_is_served_again(tmp_path, monkeypatch):
    terms, data = make(tmp_path)
    with monkeypatch.context() as patched:
        die_before(patched, 100)  # while rows are copied
        with pytest.raises(Killed):
            return_database(data, terms)
    require_unserved(terms, data)
    cancel_return(data, terms)
    read_place(terms, require_whole)
    assert not list(data.glob("ledger*"))
