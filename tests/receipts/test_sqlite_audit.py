"""Receipts and log against the ledger: what counts as a difference, and what does not."""

import sqlite3
from contextlib import closing

import pytest

from tests.calls.charging import RICH, open_stand
from tests.receipts.old_log import make_old_log
from toolserver.core import ids
from toolserver.ledger.sqlite import FILE
from toolserver.receipts.sqlite_audit import (
    KEPT_MS,
    count_logged,
    count_receipts,
    find_log_differences,
    find_receipt_differences,
    find_unlogged,
)
from toolserver.storage.group_commit import snapshot
from toolserver.storage.migrate import migrate


@pytest.fixture
async def stand(tmp_path):
    async with open_stand(tmp_path) as stand:
        stand.path = tmp_path / FILE
        yield stand


def differences(stand, after=0):
    now = stand.ledger.now() + after
    return snapshot(stand.path, lambda db: list(find_receipt_differences(db, now)))


async def test_charged_calls_have_their_receipts(stand):
    for _ in range(3):
        await stand.buy(ids.call_id())
    assert differences(stand) == []
    assert snapshot(stand.path, count_receipts) == 3


async def test_a_charge_without_a_receipt_is_found_while_receipts_are_kept(stand):
    await stand.ledger.charge("call_1", RICH, 2, endpoint="/x")
    assert differences(stand) == ["call_1 was charged 2 credits and has no receipt that says so"]
    assert differences(stand, KEPT_MS + 1) == []


async def test_a_receipt_of_a_call_that_is_not_settled_is_found(stand):
    call_id = ids.call_id()
    await stand.buy(call_id)
    await stand.ledger.reserve("call_2", RICH, 2, endpoint="/x", ttl_s=60)
    assert differences(stand) == []
    await stand.ledger.settle(call_id, no_charge="delivery_failed")
    assert differences(stand) == []  # it was given back after its receipt was signed


def log_differences(stand):
    return snapshot(stand.path, lambda db: [*find_log_differences(db, None), *find_unlogged(db)])


async def test_calls_are_compared_with_the_log_in_their_open_hour_and_after_it(stand):
    assert (log_differences(stand), snapshot(stand.path, count_logged)) == ([], 0)
    for _ in range(3):
        await stand.free(ids.call_id())
    assert (log_differences(stand), snapshot(stand.path, count_logged)) == ([], 3)
    stand.clock.advance(3660)
    assert await stand.evidence.log.close_hours() == 1
    assert (log_differences(stand), snapshot(stand.path, count_logged)) == ([], 4)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM uncharged_call WHERE seq=1", "leaf 0 is not what was booked: 1 calls, 5xx"),
        ("DELETE FROM uncharged_call", "leaf 0 says more than what was booked"),
        ("DELETE FROM no_charge", "the sum says"),
        ("UPDATE no_charge SET key=zeroblob(32)", "were booked and have no leaf in the log"),
        ("UPDATE no_charge_day SET credits=9", "the sum says (calls, credits) (2, 9), the leaves (2, 4)"),
        ("UPDATE uncharged_call SET receipt=zeroblob(32) WHERE seq=1", "of the log, where it was not booked"),
    ],
)
async def test_what_does_not_agree_is_said(stand, sql, said):
    for _ in range(2):
        await stand.free(ids.call_id())
    stand.clock.advance(3660)
    await stand.evidence.log.close_hours()
    with closing(sqlite3.connect(stand.path)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(sql)
        db.commit()
    assert any(said in text for text in log_differences(stand)), log_differences(stand)


def test_the_leaves_of_an_old_log_are_compared_with_their_receipts(tmp_path):
    make_old_log(tmp_path / "old", 3)
    path = tmp_path / "old" / FILE
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db)
        db.execute("DROP TRIGGER receipt_is_never_changed")
        assert [*find_log_differences(db, None), *find_unlogged(db)] == []
        db.execute("UPDATE receipt SET core=CAST(replace(CAST(core AS TEXT), 'cost', 'gain') AS BLOB) WHERE seq=2")
        assert [text[:43] for text in find_unlogged(db)] == [f"rcpt_{1:032x} names"]
