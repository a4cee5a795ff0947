"""A caller's own key makes repeated calls one, also for two at once and across a crash."""

import hashlib

import anyio
import pytest

from tests.calls.parts import START
from tests.requirements import proves
from toolserver.calls.idempotency import Idempotency, KeptResult, KeyClaim, KeyedCall, KeyTaken, fingerprint
from toolserver.calls.idempotency_store import KEEP_S, MemoryIdempotencyStore, SqlIdempotencyStore
from toolserver.clock import ManualClock
from toolserver.errors import IdempotencyConflict
from toolserver.sql.errors import StorageFailed
from toolserver.sql.sqlite import durable


class Fell(Exception):
    """The work came to nothing."""


class Work:
    """Counts what it was asked to do, and under which names."""

    def __init__(self):
        self.calls, self.gate, self.begun, self.failing = [], anyio.Event(), anyio.Event(), False
        self.gate.set()

    async def __call__(self, call_id):
        self.calls.append(call_id)
        self.begun.set()
        await self.gate.wait()
        if self.failing:
            raise Fell
        return f"result {len(self.calls)}"


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def work():
    return Work()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path, clock):
    if request.param == "memory":
        yield Idempotency(MemoryIdempotencyStore(clock))
    else:
        async with durable(tmp_path / "ledger.sqlite3") as file:
            yield Idempotency(SqlIdempotencyStore(file, clock))


def keep(result):
    return KeptResult(result.encode())


def decode(_call_id, kept):
    return kept.decode()


async def once(store, work, key="k", request="r", scope="s"):
    return (await store.once(scope, key, request, work, pack=keep, unpack=decode)).result


async def test_the_second_call_gets_the_first_ones_result(store, work):
    assert [await once(store, work) for _ in range(3)] == ["result 1"] * 3
    assert len(work.calls) == 1


@proves("idempotency.scope")
async def test_keys_are_the_callers_own(store, work):
    results = [await once(store, work, key, scope=scope) for key, scope in (("k", "s"), ("k", "t"), ("l", "s"))]
    assert results == ["result 1", "result 2", "result 3"]
    assert len(set(work.calls)) == 3


async def test_a_key_is_good_for_one_request(store, work):
    await once(store, work)
    with pytest.raises(IdempotencyConflict):
        await once(store, work, request="other")
    assert len(work.calls) == 1


async def test_a_twin_waits_and_one_with_another_request_does_not(store, work):
    work.gate, results = anyio.Event(), []

    async def one():
        results.append(await once(store, work))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(IdempotencyConflict):
            await once(store, work, request="other")
        work.gate.set()
    assert results == ["result 1"] * 5


async def test_a_failure_is_not_kept_and_the_next_try_has_a_name_of_its_own(store, work):
    work.failing = True
    with pytest.raises(Fell):
        await once(store, work)
    work.failing = False
    assert await once(store, work) == "result 2"
    assert len(set(work.calls)) == 2


async def test_when_the_first_fails_a_waiting_twin_tries_itself(store, work):
    work.gate, work.failing, results = anyio.Event(), True, []

    async def one():
        try:
            results.append(await once(store, work))
        except Fell:
            work.failing = False
            results.append("fell")

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        work.gate.set()
    assert results == ["fell", "result 2", "result 2"]


async def test_who_hangs_up_leaves_nothing_behind(store, work):
    work.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(once, store, work)
        with anyio.fail_after(5):
            await work.begun.wait()
        tasks.cancel_scope.cancel()
    work.gate.set()
    assert await once(store, work) == "result 2"


@proves("idempotency.scope")
async def test_a_day_later_the_key_is_forgotten(store, work, clock):
    await once(store, work)
    clock.advance(KEEP_S - 1)
    assert await once(store, work) == "result 1"
    clock.advance(2)
    assert await once(store, work, request="other") == "result 2"


async def test_a_result_survives_the_process(tmp_path, clock, work):
    for _ in range(2):
        async with durable(tmp_path / "ledger.sqlite3") as file:
            assert await once(Idempotency(SqlIdempotencyStore(file, clock)), work) == "result 1"
    assert len(work.calls) == 1


async def test_work_that_died_with_its_process_is_done_again_under_the_same_name(tmp_path, clock, work):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = Idempotency(SqlIdempotencyStore(file, clock))
        async with anyio.create_task_group() as tasks:
            work.gate = anyio.Event()
            tasks.start_soon(once, store, work)
            with anyio.fail_after(5):
                await work.begun.wait()
            again = Idempotency(
                SqlIdempotencyStore(file, clock)
            )  # as after a crash: nothing in memory, the row without a result
            with pytest.raises(IdempotencyConflict):
                await once(again, work, request="other")
            other = Work()
            assert await once(again, other) == "result 1"
            tasks.cancel_scope.cancel()
    assert other.calls == work.calls


async def test_two_instances_that_do_the_same_work_at_once_give_one_result(tmp_path, clock, work):
    """Who ends second gives what the first one stored."""
    async with durable(tmp_path / "ledger.sqlite3") as file:
        one, other = (Idempotency(SqlIdempotencyStore(file, clock)) for _ in range(2))
        work.gate, results = anyio.Event(), []

        async def ask_slowly():
            results.append(await once(one, work))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_slowly)
            with anyio.fail_after(5):
                await work.begun.wait()
            second = Work()
            second.calls = ["of another instance"]
            results.append(await once(other, second))
            work.gate.set()
    assert results == ["result 2", "result 2"]
    assert second.calls[1:] == work.calls


async def test_sweeping_forgets_old_rows_and_keeps_the_rest(tmp_path, clock, work):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = Idempotency(SqlIdempotencyStore(file, clock))
        await file.alone(
            lambda db: (
                db.executemany(
                    "INSERT INTO idempotency VALUES('s', ?, 'r', 'c', NULL, 0, NULL, NULL)",
                    [(f"old{n}",) for n in range(1200)],
                )
                and None
            )
        )
        await once(store, work)
        assert await store.sweep() == 1200
        assert await once(store, work) == "result 1"
        assert await store.sweep() == 0


async def test_what_was_paid_is_answered_even_if_it_cannot_be_kept(tmp_path, clock, work, caplog):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = Idempotency(SqlIdempotencyStore(file, clock))
        await file.alone(
            lambda db: (
                db.execute(
                    "CREATE TEMP TRIGGER full BEFORE UPDATE ON idempotency BEGIN SELECT RAISE(ABORT, 'disk full'); END"
                )
                and None
            )
        )
        assert await once(store, work) == "result 1"
        assert "could not be kept" in caplog.text
        assert await once(store, work) == "result 2"
        assert len(set(work.calls)) == 1


async def test_work_does_not_begin_unless_its_name_is_written_down(tmp_path, clock, work):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        await file.alone(lambda db: db.execute("DROP TABLE idempotency") and None)
        with pytest.raises(StorageFailed):
            await once(Idempotency(SqlIdempotencyStore(file, clock)), work)
    assert work.calls == []


async def test_a_twin_gets_the_very_result_and_nothing_is_read_back_for_it(store, work):
    work.gate, results = anyio.Event(), []

    async def one():
        results.append((await store.once("s", "k", "r", work, pack=keep, unpack=lambda *kept: "read back")).result)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        work.gate.set()
    assert results == ["result 1"] * 3
    again = await store.once("s", "k", "r", work, pack=keep, unpack=lambda *kept: kept)
    assert again == ((work.calls[0], b"result 1"), True)


async def test_what_is_done_at_once_is_the_result_and_nothing_else_is_begun(store, work):
    claims = []

    async def at_once(call_id, claim):
        claims.append((call_id, claim))
        return "at once"

    assert await store.once("s", "k", "r", work, pack=keep, unpack=decode, at_once=at_once) == ("at once", False)
    assert work.calls == []
    assert [claim for _, claim in claims] == [KeyClaim(("s", "k"), "r")]
    assert await once(store, work) == "result 1"


@pytest.mark.parametrize(("request_", "kept"), [("r", b"kept"), ("r", None), ("other", b"kept")])
async def test_a_key_that_was_taken_meanwhile_brings_what_its_call_kept_or_that_calls_work(store, work, request_, kept):
    async def at_once(call_id, claim):
        raise KeyTaken(KeyedCall(request_, "call_1", kept))

    asked = store.once("s", "k", "r", work, pack=keep, unpack=lambda *known: known, at_once=at_once)
    if request_ == "other":
        with pytest.raises(IdempotencyConflict, match="already used with other arguments"):
            await asked
    else:
        assert await asked == ((("call_1", b"kept"), True) if kept else ("result 1", False))
    assert work.calls == ([] if kept else ["call_1"])


def test_a_fingerprint_is_the_sha256_in_hex():
    assert fingerprint("ü") == hashlib.sha256("ü".encode()).hexdigest()
