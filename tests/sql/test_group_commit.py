"""One file, one writer: groups in one transaction, none spoiling another, nothing acknowledged that is not there."""

import asyncio
import logging
import os
import sqlite3
import stat
import threading
from contextlib import closing

import anyio
import pytest

from tests.requirements import proves
from toolserver.errors import ToolserverError
from toolserver.sql.errors import ConstraintViolated, ForeignDatabase, StorageClosed, StorageFailed
from toolserver.sql.group_commit import RIDE_S, WrongOutcomes
from toolserver.sql.sqlite import connect, durable, snapshot


class Refused(ToolserverError):
    """Somebody said no."""


@pytest.fixture
async def file(tmp_path):
    async with durable(tmp_path / "x.sqlite3") as file:
        await file.alone(lambda db: db.execute("CREATE TABLE note(word TEXT CHECK (word <> 'forbidden'))") and None)
        yield file


def put(word):
    return lambda db: db.execute("INSERT INTO note VALUES(?)", (word,)).rowcount


def words(db):
    return [word for (word,) in db.execute("SELECT word FROM note ORDER BY rowid")]


async def all_at_once(*awaitables):
    """The outcomes, exceptions among them, of what was asked for in one go and in this order."""
    outcomes = [None] * len(awaitables)

    async def one(number, awaitable):
        try:
            outcomes[number] = await awaitable
        except Exception as failure:
            outcomes[number] = failure

    async with anyio.create_task_group() as tasks:
        for number, awaitable in enumerate(awaitables):
            tasks.start_soon(one, number, awaitable)
    return outcomes


@proves("ledger.durable")
async def test_those_who_ask_at_the_same_time_share_a_transaction_in_their_order(file):
    seen = []

    def run(db, group):
        seen.append(len(group))
        return [put(word)(db) for word in group]

    await all_at_once(*(file.together(run, f"w{n}") for n in range(200)))
    assert seen == [128, 72]
    assert await file.read(words) == [f"w{n}" for n in range(200)]


async def test_what_was_acknowledged_is_there_for_everyone_else(file):
    await file.alone(put("kept"))
    with closing(sqlite3.connect(f"file:{file.path}?mode=ro", uri=True)) as other:
        assert words(other) == ["kept"]


@proves("ledger.durable")
async def test_every_commit_is_synced_to_the_disk(file):
    assert await file.alone(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (2,)
    assert await file.alone(lambda db: db.execute("PRAGMA journal_mode").fetchone()) == ("wal",)


async def test_a_job_that_raises_leaves_nothing_and_spoils_nothing(file):
    def refuse(db):
        put("half")(db)
        raise Refused("no")

    outcomes = await all_at_once(
        file.alone(put("before")), file.alone(refuse), file.alone(put("forbidden")), file.alone(put("after"))
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["int", "Refused", "StorageFailed", "int"]
    assert await file.read(words) == ["before", "after"]


async def test_one_that_breaks_its_group_fails_alone(file, caplog):
    def run(db, group):
        return [put(word)(db) for word in group]

    with caplog.at_level(logging.CRITICAL):
        outcomes = await all_at_once(*(file.together(run, word) for word in ("a", "forbidden", "b")))
    assert [type(outcome).__name__ for outcome in outcomes] == ["int", "StorageFailed", "int"]
    assert await file.read(words) == ["a", "b"]


async def test_when_another_process_holds_the_file_for_too_long_nobody_is_told_it_was_written(file, caplog):
    await file.alone(lambda db: db.execute("PRAGMA busy_timeout=1") and None)
    other = connect(file.path)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.CRITICAL):
        outcomes = await all_at_once(file.alone(put("a")), file.alone(put("b")))
    assert [type(outcome).__name__ for outcome in outcomes] == ["StorageFailed"] * 2
    other.close()
    await file.alone(put("c"))
    assert await file.read(words) == ["c"]


@pytest.mark.parametrize("returned", [[], ["one", "too many", "of all"]])
async def test_a_group_with_the_wrong_number_of_outcomes_fails_its_callers_and_the_writer_goes_on(
    file, caplog, returned
):
    def forget(db, group):
        put("unheard")(db)
        return returned

    with caplog.at_level(logging.CRITICAL):
        with anyio.fail_after(5):
            outcomes = await all_at_once(
                file.together(forget, "a"), file.alone(put("b")), file.together(forget, "c"), file.together(forget, "d")
            )
    assert [type(outcome) for outcome in outcomes] == [WrongOutcomes, int, WrongOutcomes, WrongOutcomes]
    assert f"{len(returned)} outcomes for 1 operations" in str(outcomes[0])
    with anyio.fail_after(5):
        await file.alone(put("after"))
        assert await file.read(words) == ["b", "after"]


async def test_a_read_with_the_wrong_number_of_outcomes_fails_and_the_reader_goes_on(file):
    with anyio.fail_after(5), pytest.raises(WrongOutcomes):
        await file._reader.ask(lambda db, jobs: [], None)
    assert await file.read(words) == []


async def test_the_error_of_the_engine_is_the_cause_of_the_failure(file):
    with pytest.raises(StorageFailed) as caught:
        await file.alone(put("forbidden"))
    assert isinstance(caught.value.__cause__, ConstraintViolated)
    assert isinstance(caught.value.__cause__.__cause__, sqlite3.IntegrityError)
    with pytest.raises(StorageFailed, match="nonsense"):
        await file.apart(lambda db: db.execute("nonsense"))


async def test_a_transaction_that_sqlite_gives_up_is_written_by_nobody(file, caplog):
    """A full disk rolls the whole transaction back, whatever of it had gone well."""

    def out_of_space(db):
        db.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    with caplog.at_level(logging.CRITICAL):
        outcomes = await all_at_once(file.alone(put("a")), file.alone(out_of_space))
    assert [type(outcome).__name__ for outcome in outcomes] == ["StorageFailed"] * 2
    assert await file.read(words) == []


async def test_what_is_cancelled_before_its_turn_is_not_done(file):
    begun, go = threading.Event(), threading.Event()

    def slow(db):
        begun.set()
        go.wait(5)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(file.alone, slow)
        await anyio.to_thread.run_sync(begun.wait)
        async with anyio.create_task_group() as hurried:
            hurried.start_soon(file.alone, put("late"))
            await anyio.wait_all_tasks_blocked()
            hurried.cancel_scope.cancel()
        go.set()
    assert await file.read(words) == []


async def test_what_is_cancelled_while_it_is_done_is_done_unheard(file):
    begun, go = threading.Event(), threading.Event()

    def slow(db):
        begun.set()
        go.wait(5)
        return put("done")(db)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(file.alone, slow)
        await anyio.to_thread.run_sync(begun.wait)
        tasks.cancel_scope.cancel()
    go.set()
    await file.alone(put("next"))
    assert await file.read(words) == ["done", "next"]


async def test_a_write_nobody_waits_for_is_done_and_its_failure_logged(file, caplog):
    def run(db, group):
        return [Refused("quietly") if word == "refused" else put(word)(db) for word in group]

    for word in ("a", "refused", "forbidden"):
        file.soon(run, word)
    await file.alone(put("b"))
    assert await file.read(words) == ["a", "b"]
    assert ["in the background failed" in record.message for record in caplog.records].count(True) == 1


async def test_a_reader_writes_nothing_and_its_failure_is_its_own(file):
    outcomes = await all_at_once(file.read(put("a")), file.read(words), file.read(lambda db: db.execute("nonsense")))
    assert [type(outcome).__name__ for outcome in outcomes] == ["StorageFailed", "list", "StorageFailed"]


async def test_a_reader_whose_transaction_is_gone_answers_the_next_one(file):
    with pytest.raises(StorageFailed, match="no such savepoint"):
        await file.read(lambda db: db.execute("RELEASE one"))
    assert await file.read(words) == []


async def test_a_long_read_sees_one_moment_and_keeps_nobody_waiting(file):
    begun, go = threading.Event(), threading.Event()

    def long(db):
        first = words(db)
        begun.set()
        go.wait(5)
        return first, words(db)

    found = []

    async def look():
        found.append(await file.apart(long))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await anyio.to_thread.run_sync(begun.wait)
        await file.alone(put("meanwhile"))
        assert await file.read(words) == ["meanwhile"]
        go.set()
    assert found == [([], [])]


async def test_on_leaving_what_waits_is_written_and_what_comes_later_is_refused(tmp_path):
    async with anyio.create_task_group() as tasks:
        async with durable(tmp_path / "x.sqlite3") as file:
            await file.alone(lambda db: db.execute("CREATE TABLE note(word)") and None)
            for n in range(300):
                tasks.start_soon(file.alone, put(n))
            await anyio.lowlevel.checkpoint()
        for asked in (file.alone(put("late")), file.read(words)):
            with pytest.raises(StorageClosed):
                await asked
        file.soon(lambda db, group: [], "late")
    assert snapshot(tmp_path / "x.sqlite3", words) == list(range(300))


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
async def test_only_the_owner_can_read_the_file(tmp_path):
    path = tmp_path / "new" / "x.sqlite3"
    async with durable(path) as file:
        await file.alone(lambda db: db.execute("CREATE TABLE note(word)") and None)
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [path.parent, *path.parent.iterdir()]}
        assert stat.S_IMODE((path.parent / "keys" / "rows.json").stat().st_mode) == 0o600
    assert modes == {"new": 0o700, "keys": 0o700, "x.sqlite3": 0o600, "x.sqlite3-wal": 0o600, "x.sqlite3-shm": 0o600}


async def test_a_file_that_is_not_ours_is_left_alone(tmp_path):
    path = tmp_path / "x.sqlite3"
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(StorageFailed, match="not a database"):
        async with durable(path):
            pass
    assert path.read_bytes() == b"something else entirely" * 100


async def test_a_database_of_somebody_else_is_let_go(tmp_path):
    path = tmp_path / "x.sqlite3"
    theirs = connect(path)
    theirs.execute("CREATE TABLE theirs(x)")
    with pytest.raises(ForeignDatabase):
        async with durable(path):
            pass
    theirs.execute("PRAGMA journal_mode=DELETE")  # possible only for the last one who has it open
    theirs.close()


async def test_what_rides_shares_the_next_commit_and_begins_none(file):
    groups = []

    def note(db, given):
        groups.append(("note", list(given)))
        return [None] * len(given)

    def write(db, given):
        groups.append(("write", list(given)))
        return [None] * len(given)

    file.ride(note, 1)
    file.ride(note, 2)
    for _ in range(5):  # turns in which a group would have been formed
        await anyio.lowlevel.checkpoint()
    assert groups == []
    await file.together(write, 3)
    assert groups == [("note", [1, 2]), ("write", [3])]


async def test_what_rides_is_written_alone_within_a_twentieth_of_a_second_when_nothing_else_is(file, monkeypatch):
    written, waits = threading.Event(), []
    call_later = asyncio.get_running_loop().call_later
    monkeypatch.setattr(
        asyncio.get_running_loop(), "call_later", lambda s, *rest: (waits.append(s), call_later(s, *rest))[1]
    )
    file.ride(lambda db, given: [written.set() for _ in given], 1)
    assert waits == [RIDE_S]
    assert RIDE_S < 0.05
    assert await anyio.to_thread.run_sync(written.wait, 5)


async def test_what_rides_is_written_before_the_file_is_closed(tmp_path):
    path = tmp_path / "x.sqlite3"
    async with durable(path) as file:
        await file.alone(lambda db: db.execute("CREATE TABLE note(word TEXT)") and None)
        file.ride(lambda db, given: [db.execute("INSERT INTO note VALUES('late')") and None for _ in given], 1)
    async with durable(path) as file:
        assert await file.read(words) == ["late"]
