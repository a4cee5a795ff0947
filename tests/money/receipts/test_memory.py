"""The store in memory is the one under the contract of `test_store`; what is its own is that it keeps nothing."""

import pytest

from tests.calls.parts import START
from tests.money.receipts.stores import append_hours, lease_at, open_store
from tests.money.receipts.test_merkle import consistent, mth, root_from_path, unbundled
from tests.money.receipts.test_store import HOUR, NOW, OVER, event, issuer, sale, signing
from toolserver.clock import ManualClock
from toolserver.money.receipts.issue import IssueReceipt, RecordUncharged
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import AppendHour, BucketNamer, UnchargedCall
from toolserver.money.receipts.memory import MemoryReceiptStore
from toolserver.money.receipts.merkle import Tile

__all__ = ["event", "issuer"]


@pytest.fixture
def store():
    return MemoryReceiptStore()


def booking(folder, at):
    buckets = BucketNamer(KeyRing(folder / "log.json", ManualClock(START)))
    return RecordUncharged(buckets, UnchargedCall(at, "0" * 64, "5xx", "/x", 1))


async def test_nothing_outlives_the_object(tmp_path):
    for _ in range(2):
        async with open_store("memory", tmp_path) as store:
            assert await store.days(5) == []
            await store.record(booking(tmp_path, 0.0))
            assert await store.days(5) == [("1970-01-01", 1)]


async def test_a_call_that_cannot_be_booked_changes_nothing(tmp_path):
    async with open_store("memory", tmp_path) as store:
        with pytest.raises(ValueError, match="NaN"):
            await store.record(booking(tmp_path, float("inf")))
        assert await store.head() == (None, 0, -1)
        assert await store.days(5) == []


async def test_hours_before_a_given_one_wait_until_they_are_in_the_log(store, event):
    for late in (0, 3600, 3600, 86_400):
        await store.record(event(at=NOW + late))
    assert await store.list_hours(HOUR) == []
    assert await store.list_hours(HOUR + 1) == [HOUR]
    assert await store.list_hours(HOUR + 25) == [HOUR, HOUR + 1, HOUR + 24]
    await append_hours(store, OVER + 3600)
    assert await store.list_hours(HOUR + 25) == [HOUR + 24]
    assert await store.head() == (None, 3, HOUR + 1)


async def test_an_hour_is_appended_once_and_as_it_is_by_the_one_that_holds_the_lease(store, event):
    await store.record(event())
    seen = AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER))
    await store.record(event())
    assert not await store.append(seen)
    assert await store.take_lease(lease_at(OVER, "b", lasts_s=9))
    assert not await store.append(AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER + 8)))
    assert await store.append(AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER + 9)))
    assert not await store.append(AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER + 9)))
    assert not await store.take_lease(lease_at(OVER + 9, "b"))
    assert await store.take_lease(lease_at(OVER + 10))
    assert (await store.head()).size == 2


async def test_a_receipt_is_kept_and_its_bucket_found(store, issuer, event):
    await store.record(event())
    receipt = await store.issue(IssueReceipt(issuer, sale(charged=0, reason="5xx"), NOW))
    assert await store.issue(IssueReceipt(issuer, sale(charged=0, reason="5xx"), NOW)) == receipt
    assert (await store.receipt(receipt.id), await store.receipt("rcpt_0")) == (receipt, None)
    assert await store.list_known([receipt.id, "rcpt_0"]) == {receipt.id}
    other, booked = await store.list_booked(HOUR)
    assert await store.find_bucket(HOUR, booked.key) == (None, [booked.receipt])
    assert await store.find_bucket(HOUR, other.key) == (None, [])
    await append_hours(store, OVER)
    place = sorted([booked.key, other.key]).index(booked.key)
    assert await store.find_bucket(HOUR, booked.key) == (place, [booked.receipt])
    assert await store.find_bucket(HOUR + 1, booked.key) == (None, [])


async def test_leaves_tiles_and_proofs_reach_as_far_as_the_log(store, event):
    for number in range(5):
        await store.record(event(number))
    await append_hours(store, OVER)
    old = await store.sign_checkpoint(signing())
    for number in range(3):
        await store.record(event(number, at=OVER))
    await append_hours(store, OVER + 3600)
    new = await store.sign_checkpoint(signing())
    leaves = [await store.leaf(index) for index in range(8)]
    assert (old.root, new.root, await store.leaf(8)) == (mth(leaves[:5]), mth(leaves), None)
    for index, size, root in ((0, 5, old.root), (4, 5, old.root), (0, 8, new.root), (7, 8, new.root)):
        assert root_from_path(leaves[index], index, size, await store.inclusion(index, size)) == root
    assert [await store.inclusion(index, size) for index, size in ((5, 5), (-1, 5), (0, 9), (0, 0))] == [None] * 4
    assert consistent(5, 8, old.root, new.root, await store.consistency(5, 8))
    assert await store.consistency(8, 8) == []
    assert [await store.consistency(old, new) for old, new in ((0, 5), (6, 5), (5, 9))] == [None] * 3
    assert unbundled(await store.tile(Tile(None, 0, 8))) == leaves
    assert unbundled(await store.tile(Tile(None, 0, 3))) == leaves[:3]
    assert len(await store.tile(Tile(0, 0, 8))) == 8 * 32
    assert await store.tile(Tile(None, 0, 9)) is None


async def test_a_day_has_its_own_calls_the_newest_first_and_days_are_counted(store, event):
    await store.record(event(at=NOW - 86_400))
    for number in range(3):
        await store.record(event(number, at=NOW + number))
    await store.record(event(at=NOW + 3600))
    await append_hours(store, OVER)
    sums, shown, waiting = await store.day("2027-01-15", 3)
    assert sorted((row.endpoint, row.calls, row.credits) for row in sums) == [
        ("/api/pro/0", 2, 4),
        ("/api/pro/1", 1, 2),
        ("/api/pro/2", 1, 2),
    ]
    assert [(call.at, call.seq is None, call.reason, call.credits, call.receipt) for call in shown] == [
        (int((NOW + late) * 1000), late == 3600, "5xx", 2, None) for late in (3600, 2, 1)
    ]
    assert waiting == 1
    assert await store.days(5) == [("2027-01-15", 4), ("2027-01-14", 1)]
    assert await store.days(1) == [("2027-01-15", 4)]
