"""The follower's journal: a crash forgets no release, and a release is sent until it is acknowledged."""

import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.journal_store import Journal
from toolserver.sql.errors import StorageFailed
from toolserver.sql.sqlite import durable


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
async def file(tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        yield file


@pytest.fixture
def journal(file, clock):
    return Journal(file, clock)


async def test_a_call_that_was_sent_is_forgotten(journal):
    for step in ("reserving", "committing", "committed"):
        await journal.note("c1", step)
    await journal.done("c1")
    assert await journal.recover() == []
    assert await journal.due() == []


async def test_what_was_on_the_way_when_the_process_died_is_released(journal):
    await journal.note("c1", "reserving")
    await journal.note("c2", "reserving")
    await journal.note("c2", "committed")
    await journal.release("c3", "5xx")
    assert sorted(await journal.recover()) == ["c1", "c2"]
    assert {(r.call_id, r.reason) for r in await journal.due()} == {
        ("c1", "delivery_failed"),
        ("c2", "delivery_failed"),
        ("c3", "5xx"),
    }
    assert await journal.recover() == []


async def test_a_release_stays_a_release_with_its_first_reason(journal):
    await journal.release("c1", "cancelled")
    await journal.note("c1", "committing")
    await journal.release("c1", "5xx")
    assert [(r.call_id, r.reason) for r in await journal.due()] == [("c1", "cancelled")]
    await journal.done("c1")
    assert await journal.due() == []


async def test_delivered_calls_are_forgotten_unless_they_are_to_be_released_or_were_never_charged(journal):
    for number, step in enumerate(("reserving", "committing", "committed")):
        await journal.note(f"c{number}", step)
    await journal.release("c3", "5xx")
    await journal.delivered(["c0", "c1", "c2", "c3", "unknown"])
    assert len(await journal.recover()) == 1
    assert {release.call_id for release in await journal.due()} == {"c0", "c3"}


async def test_a_call_is_struck_with_the_next_commit_unless_it_is_to_be_released(journal):
    for call_id in ("c1", "c2"):
        await journal.note(call_id, "committed")
    await journal.release("c2", "5xx")
    for call_id in ("c1", "c2", "unknown"):
        journal.strike(call_id)
    await journal.note("c3", "reserving")
    assert await journal.recover() == ["c3"]
    assert {release.call_id for release in await journal.due()} == {"c2", "c3"}


async def test_the_journal_says_how_many_releases_wait_and_until_when(journal, clock):
    assert await journal.waiting() == (0, None)
    await journal.note("c0", "reserving")
    await journal.release("c1", "5xx", wait_s=5)
    await journal.release("c2", "5xx", wait_s=8)
    assert await journal.waiting() == (2, 5.0)
    assert await journal.due() == []
    clock.advance(7)
    assert await journal.waiting() == (2, 0.0)
    assert [release.call_id for release in await journal.due()] == ["c1"]


async def test_what_was_never_noted_is_neither_postponed_nor_done(journal):
    await journal.later("c1")
    await journal.done("c1")
    assert await journal.waiting() == (0, None)


async def test_a_call_is_noted_step_by_step_until_it_is_to_be_released(journal):
    steps = ("reserving", "committing", "committed")
    assert [await journal.note("c1", step) for step in steps] == [None, "reserving", "committing"]
    await journal.release("c1", "5xx")
    assert [await journal.note("c1", "reserving") for _ in range(2)] == ["releasing", "releasing"]
    await journal.release("c1", "cancelled", wait_s=9)
    assert await journal.due() == [("c1", "5xx", 0)]
    await journal.done("c1")
    assert await journal.waiting() == (0, None)
    assert await journal.note("c1", "reserving") is None


async def test_releases_are_due_after_their_wait_the_longest_waiting_first(journal, clock):
    for call_id, wait_s in (("c1", 5), ("c2", 2.5), ("c3", 0), ("c4", 7)):
        await journal.release(call_id, "5xx", wait_s=wait_s)
    assert [(await journal.waiting()), [each.call_id for each in await journal.due()]] == [(4, 0.0), ["c3"]]
    await journal.done("c3")
    assert await journal.waiting() == (3, 2.5)
    clock.advance(5)
    assert [each.call_id for each in await journal.due()] == ["c2", "c1"]
    assert [each.call_id for each in await journal.due(1)] == ["c2"]
    clock.advance(1)
    assert await journal.waiting() == (3, 0.0)


async def test_notes_outlive_the_process(tmp_path):
    clock = ManualClock(START)
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = Journal(file, clock)
        await journal.note("c1", "committing")
        await journal.release("c2", "5xx", wait_s=3)
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = Journal(file, clock)
        assert await journal.waiting() == (1, 3.0)
        assert await journal.note("c1", "committed") == "committing"
        assert len(await journal.recover()) == 1
        assert [(release.call_id, release.reason) for release in await journal.due()] == [("c1", "delivery_failed")]


async def test_a_journal_that_is_closed_says_so(tmp_path):
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = Journal(file, ManualClock(START))
    with pytest.raises(StorageFailed):
        await journal.note("c1", "reserving")
    with pytest.raises(StorageFailed):
        await journal.waiting()


async def test_a_release_that_failed_is_due_again_after_a_wait_that_doubles_up_to_five_minutes(journal, clock):
    await journal.release("c1", "5xx")
    for tries, wait_s in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300), 1):
        await journal.later("c1")
        assert (await journal.waiting(), await journal.due()) == ((1, wait_s), [])
        clock.advance(wait_s)
        assert await journal.due() == [("c1", "5xx", tries)]


async def test_what_a_dead_process_left_is_released_at_once_with_the_answers_that_were_kept_of_it(journal, file):
    await journal.note("c1", "reserving")
    await journal.release("c2", "5xx", wait_s=60)
    row = "INSERT INTO idempotency(scope, key, request, call_id, expires_at) VALUES('s', ?, 'r', ?, 0)"
    await file.alone(lambda db: db.executemany(row, [("k1", "c1"), ("k2", "c2")]) and None)
    assert await journal.recover() == ["c1"]
    assert (await journal.waiting(), await journal.due()) == ((2, 0.0), [("c1", "delivery_failed", 0)])
    left = await file.read(lambda db: db.execute("SELECT call_id FROM idempotency").fetchall())
    assert left == [("c2",)]


async def test_a_call_is_struck_with_the_next_commit_if_it_was_charged(journal):
    for call_id, step in (("c1", "reserving"), ("c2", "committing"), ("c3", "committed")):
        await journal.note(call_id, step)
        journal.strike(call_id)
    await journal.note("c4", "reserving")
    assert await journal.recover() == ["c1", "c4"]


async def test_a_hundred_releases_are_due_at_once_unless_more_are_asked_for(journal):
    for number in range(101):
        await journal.release(f"c{number}", "5xx")
    assert [len(await journal.due()), len(await journal.due(101))] == [100, 101]
