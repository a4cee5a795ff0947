"""One contract for the stores of calls with a key: in memory and in SQLite."""

import hashlib

import pytest

from tests.calls.parts import START
from tests.postgres import POSTGRES, terms_of
from tests.requirements import proves
from toolserver.calls.idempotency import KeptResult, KeyedCall, SharedBytes
from toolserver.calls.idempotency_store import (
    ENTRIES,
    KEEP_S,
    SWEPT,
    MemoryIdempotencyStore,
    SqlIdempotencyStore,
)
from toolserver.clock import ManualClock
from toolserver.sql.errors import StorageFailed
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.sqlite import durable

NAME = ("scope", "key")


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def store(request, tmp_path, clock):
    if request.param == "memory":
        yield MemoryIdempotencyStore(clock)
    elif request.param == "postgres":
        async with open_postgres(terms_of(tmp_path)) as file:
            yield SqlIdempotencyStore(file, clock)
    else:
        async with durable(tmp_path / "ledger.sqlite3") as file:
            yield SqlIdempotencyStore(file, clock)


async def test_a_new_call_is_stored_and_found_again_by_scope_and_key(store):
    assert await store.begin(NAME, "r", "call_1") == KeyedCall("r", "call_1", None)
    assert await store.begin(NAME, "other", "call_2") == KeyedCall("r", "call_1", None)
    assert await store.begin(("scope", "another"), "r", "call_3") == KeyedCall("r", "call_3", None)
    assert await store.begin(("another", "key"), "r", "call_4") == KeyedCall("r", "call_4", None)


async def test_a_result_comes_back_byte_for_byte(store):
    result = bytes(range(256)) * 100
    await store.begin(NAME, "r", "call_1")
    await store.keep(NAME, KeptResult(result))

    assert await store.begin(NAME, "r", "call_2") == KeyedCall("r", "call_1", result)


async def test_the_first_result_of_a_call_stays_and_is_told_to_who_comes_second(store):
    assert await store.keep(NAME, KeptResult(b"of none")) is None
    await store.begin(NAME, "r", "call_1")

    assert await store.keep(NAME, KeptResult(b"first")) == b"first"
    assert await store.keep(NAME, KeptResult(b"second")) == b"first"
    assert (await store.begin(NAME, "r", "call_2")).result == b"first"


async def test_a_dropped_call_is_new_the_next_time_but_only_its_own_call_id_drops_it(store):
    await store.begin(NAME, "r", "call_1")
    await store.drop(NAME, "call_2")
    assert (await store.begin(NAME, "r", "call_3")).call_id == "call_1"
    await store.drop(NAME, "call_1")
    assert (await store.begin(NAME, "r", "call_3")).call_id == "call_3"


async def test_keeping_or_dropping_what_is_not_there_does_nothing(store):
    await store.keep(NAME, KeptResult(b"result"))
    await store.drop(NAME, "call_1")

    assert await store.begin(NAME, "r", "call_2") == KeyedCall("r", "call_2", None)


async def test_a_call_is_kept_for_a_day_from_when_it_began(store, clock):
    await store.begin(NAME, "r", "call_1")
    clock.advance(KEEP_S - 1)
    await store.keep(NAME, KeptResult(b"result"))
    assert (await store.begin(NAME, "r", "call_2")).result == b"result"
    clock.advance(1)
    assert await store.begin(NAME, "r", "call_2") == KeyedCall("r", "call_2", None)


async def test_sweeping_forgets_expired_calls_and_says_how_many(store, clock):
    for number in range(2 * SWEPT + 1):
        await store.begin(("scope", f"old {number}"), "r", "call")
    clock.advance(KEEP_S)
    await store.begin(NAME, "r", "call_1")

    assert await store.sweep() == 2 * SWEPT + 1
    assert await store.sweep() == 0
    assert (await store.begin(NAME, "r", "call_2")).call_id == "call_1"


async def test_memory_is_bounded_and_forgets_the_oldest(clock):
    store = MemoryIdempotencyStore(clock)
    for number in range(ENTRIES + 1):
        await store.begin(("scope", str(number)), "r", f"call_{number}")

    assert (await store.begin(("scope", str(ENTRIES)), "r", "new")).call_id == f"call_{ENTRIES}"
    assert (await store.begin(("scope", "0"), "r", "new")).call_id == "new"


async def test_the_file_keeps_a_call_over_a_restart(tmp_path, clock):
    for _ in range(2):
        async with durable(tmp_path / "ledger.sqlite3") as file:
            store = SqlIdempotencyStore(file, clock)
            known = await store.begin(NAME, "r", "call_1")
            await store.keep(NAME, KeptResult(b"result"))

    assert known == KeyedCall("r", "call_1", b"result")


async def test_a_file_that_cannot_be_written_is_said(tmp_path, clock):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = SqlIdempotencyStore(file, clock)
    with pytest.raises(StorageFailed):
        await store.begin(NAME, "r", "call_1")


async def test_sweeping_forgets_shared_bytes_that_no_key_names_any_more_and_keeps_the_others(tmp_path, clock):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = SqlIdempotencyStore(file, clock)
        old = [(hashlib.sha256(b"%d" % number).digest(), b"old", 0) for number in range(2 * SWEPT + 1)]
        await file.alone(lambda db: db.executemany("INSERT INTO shared_result VALUES(?,?,?)", old) and None)
        await store.begin(NAME, "r", "call_1")
        await store.keep(NAME, KeptResult(b"own ", SharedBytes(b"shared")))

        assert await store.sweep() == 0
        kept = await file.read(lambda db: db.execute("SELECT sha256 FROM shared_result").fetchall())
        assert kept == [(hashlib.sha256(b"shared").digest(),)]


@proves("idempotency.scope")
def test_a_call_is_kept_for_a_day():
    assert KEEP_S == 86_400
