"""Receipts and log against the ledger: what counts as a difference, and what does not."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.calls.charging import RICH, open_stand
from tests.money.receipts.old_log import make_old_log
from toolserver.core.caller import new_call_id
from toolserver.money.books.sql_reconciliation import (
    KEPT_MS,
    check_held_receipts,
    count_logged,
    count_receipts,
    find_log_differences,
    find_receipt_differences,
    find_unlogged,
)
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.keys import RECEIPT_KEYS, read_keys
from toolserver.money.receipts.log import LogMark
from toolserver.money.receipts.sign import Body, Sale
from toolserver.money.receipts.sql_store import last_checkpoint, read_receipts
from toolserver.sql.migrate import migrate
from toolserver.sql.sqlite import snapshot


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
        await stand.buy(new_call_id())
    assert differences(stand) == []
    assert snapshot(stand.path, count_receipts) == 3


async def test_receipts_that_callers_hold_and_the_ledger_lost_are_named_one_by_one(stand, tmp_path):
    """A failover to a copy from before the last sales: what callers and logs have is more than the ledger knows."""
    calls = [new_call_id() for _ in range(3)]
    await stand.buy(calls[0])
    older = tmp_path / "older.sqlite3"
    with closing(sqlite3.connect(stand.path)) as db:
        db.execute("VACUUM INTO ?", (str(older),))
    for call_id in calls[1:]:
        await stand.buy(call_id)
    kept = snapshot(stand.path, lambda db: list(read_receipts(db)))
    jws = [receipt.jws for receipt in kept]
    lines = [jws[0], f'10.0.0.1 "GET /api/pro/x" 200 receipt={jws[1]} 12 ms', json.dumps({"receipt": jws[2]})]
    keys = read_keys(tmp_path / RECEIPT_KEYS)
    for place, lost in ((stand.path, []), (older, calls[1:])):
        found = check_held_receipts(place, lines, keys)
        assert found.compared == 3
        assert [call_id for call_id in lost if any(call_id in text for text in found.differences)] == lost
        assert len(found.differences) == len(lost)
    forged = check_held_receipts(older, [jws[1][:-6] + "AAAAAA", '{"receipt": "a.b"}', "no receipt here"], keys)
    assert forged.compared == 2
    assert "none of our keys signed it" in forged.differences[0]
    assert "line 2: it is no receipt" in forged.differences[1]


async def test_a_charge_without_a_receipt_is_found_while_receipts_are_kept(stand):
    await stand.ledger.charge("call_1", RICH, 2, endpoint="/x")
    assert differences(stand) == ["call_1 was charged 2 credits and has no receipt that says so"]
    days = 89 * 86_400_000
    assert (len(differences(stand, days)), differences(stand, days + 1), KEPT_MS) == (1, [], days)


async def test_a_receipt_of_a_call_that_is_not_settled_is_found(stand):
    call_id = new_call_id()
    await stand.buy(call_id)
    await stand.ledger.reserve("call_2", RICH, 2, endpoint="/x", ttl_s=60)
    assert differences(stand) == []
    await stand.ledger.settle(call_id, no_charge="delivery_failed")
    assert differences(stand) == []  # it was given back after its receipt was signed


async def test_a_receipt_that_the_ledger_does_not_bear_out_is_found(stand):
    async def sign(call_id, charged, balance=98):
        await stand.evidence.sign(Sale(call_id, "f" * 64, "/x", "GET /x", 2, charged, balance, body=Body("a" * 64, 1)))

    for call_id in ("call_open", "call_void", "call_dear"):
        await stand.ledger.reserve(call_id, RICH, 3, endpoint="/x", ttl_s=60)
    await stand.ledger.settle("call_void", no_charge="5xx")
    await stand.ledger.settle("call_dear", no_charge=None)
    for call_id, charged in (("call_none", 2), ("call_free", 0), ("call_open", 3), ("call_void", 3), ("call_dear", 2)):
        await sign(call_id, charged)
    await sign("call_x402", 2, None)
    assert differences(stand) == [
        "rcpt_dear says 2 credits were charged for call_dear; the ledger has it as posted, for 3 credits",
        "rcpt_none says 2 credits were charged for call_none; the ledger has no such call",
        "rcpt_open says 3 credits were charged for call_open; the ledger has it as open, for 3 credits",
        "call_dear was charged 3 credits and has no receipt that says so",
    ]


async def test_a_receipt_of_a_call_that_may_have_been_removed_is_no_difference(stand):
    await stand.evidence.sign(Sale("call_1", "f" * 64, "/x", "GET /x", 2, 2, 98, body=Body("a" * 64, 1)))
    now = stand.ledger.now()
    insert = "INSERT INTO closed_month VALUES(?, ?, 0, '', 0, 1)"
    for name, until, found in (("1970-01", now - 86_400_000, 1), ("1970-02", now - 86_400_000 + 1, 0)):
        await stand.ledger.file.alone(lambda db, row=(name, until): db.execute(insert, row) and None)
        assert len(differences(stand)) == found


async def test_a_log_that_is_not_what_was_signed_is_found(stand):
    await stand.free(new_call_id())
    stand.clock.advance(3660)
    await stand.evidence.log.close_hours()
    root = snapshot(stand.path, last_checkpoint).root

    def compare(*mark):
        return snapshot(stand.path, lambda db: list(find_log_differences(db, LogMark(*mark))))

    assert compare(1, root) == []
    assert compare(2, root) == ["the log has 1 leaves, the mark outside the database 2"]
    assert compare(1, bytes(32)) == ["the first 1 leaves of the log are not those of the mark outside the database"]


def log_differences(stand):
    return snapshot(stand.path, lambda db: [*find_log_differences(db, None), *find_unlogged(db)])


async def test_calls_are_compared_with_the_log_in_their_open_hour_and_after_it(stand):
    assert (log_differences(stand), snapshot(stand.path, count_logged)) == ([], 0)
    for _ in range(3):
        await stand.free(new_call_id())
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
        await stand.free(new_call_id())
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
