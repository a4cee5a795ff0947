"""What every receipt store promises: one receipt per sale, a leaf with each uncharged call, proofs that hold."""

import hashlib
import itertools
import json
import time

import anyio
import pytest

from tests.calls.parts import START
from tests.money.receipts.stores import KINDS, append_hours, lease_at, open_store
from tests.money.receipts.test_merkle import consistent, mth, root_from_path, unbundled
from toolserver.clock import ManualClock
from toolserver.money.receipts.issue import IssueReceipt, ReceiptIssuer, RecordUncharged
from toolserver.money.receipts.keys import KeyRing, make_key
from toolserver.money.receipts.log import (
    AppendHour,
    BucketNamer,
    LogForked,
    SignCheckpoint,
    UnchargedCall,
    hour_at,
    show_hour,
)
from toolserver.money.receipts.merkle import Tile
from toolserver.money.receipts.sign import Body, Sale

NOW = START.timestamp()
HOUR = hour_at(NOW)
OVER = NOW + 3600
ORIGIN = "data.example/log"
KEY = make_key()


@pytest.fixture(params=KINDS)
async def store(request, tmp_path):
    async with open_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture
def issuer(tmp_path):
    ring = KeyRing(tmp_path / "keys.json", ManualClock(START))
    return ReceiptIssuer(ring, service="data.example", origin=ORIGIN, buckets=BucketNamer(ring))


@pytest.fixture
def event(issuer):
    """What books a call of a token of its own."""
    owners = itertools.count()

    def make(number=0, *, at=NOW, reason="5xx"):
        owner = f"{next(owners):064x}"
        return RecordUncharged(issuer.buckets, UnchargedCall(at, owner, reason, f"/api/pro/{number % 3}", 2))

    return make


def sale(call="call_" + "1" * 32, *, reason=None, charged=2, body="a" * 64):
    request = "GET /api/pro/x"
    return Sale(call, "f" * 64, "/api/pro/x", request, 2, charged, 98, reason=reason, body=Body(body, 10))


def signing(now=NOW):
    return SignCheckpoint(ORIGIN, KEY, int(now * 1000))


async def entries(store):
    return [await store.leaf(index) for index in range((await store.head()).size)]


async def test_a_receipt_is_found_by_its_id_and_the_same_sale_gets_the_same_one(store, issuer):
    issued = await store.issue(IssueReceipt(issuer, sale(), NOW))
    again = await store.issue(IssueReceipt(issuer, sale(), NOW + 5))
    assert issued == again == await store.receipt(issued.id)
    assert (issued.owner, issued.at) == ("f" * 64, int(NOW * 1000))
    assert json.loads(issued.core)["credits_charged"] == 2
    assert await store.receipt("rcpt_unknown") is None
    assert (await store.head()).size == 0


async def test_another_answer_to_the_same_call_gets_a_receipt_of_its_own(store, issuer):
    first = await store.issue(IssueReceipt(issuer, sale(), NOW))
    other = await store.issue(IssueReceipt(issuer, sale(body="b" * 64), NOW))
    taken_back = await store.issue(IssueReceipt(issuer, sale(charged=0, reason="cancelled"), NOW))
    assert len({first.id, other.id, taken_back.id}) == 3
    assert [await store.receipt(each.id) for each in (first, other, taken_back)] == [first, other, taken_back]


async def test_the_receipt_of_an_uncharged_call_names_its_bucket_and_the_bucket_has_its_receipt(store, issuer, event):
    await store.record(event())
    receipt = await store.issue(IssueReceipt(issuer, sale(reason="5xx", charged=0), NOW))
    place, digest = json.loads(receipt.core)["log"], hashlib.sha256(receipt.core).digest()
    key = bytes.fromhex(place["key"])
    assert (place["origin"], place["hour"], len(place["salt"])) == (ORIGIN, "2027-01-15T08:00:00Z", 32)
    assert await store.find_bucket(HOUR, key) == (None, [digest])
    await append_hours(store, OVER)
    seq, receipts = await store.find_bucket(HOUR, key)
    assert (receipts, json.loads(await store.leaf(seq))) == (
        [digest],
        {
            "v": 2,
            "seq": seq,
            "hour": place["hour"],
            "key": place["key"],
            "reason": "5xx",
            "endpoint": "/api/pro/x",
            "calls": 1,
            "credits": 2,
            "receipts": 1,
            "receipts_root": hashlib.sha256(b"\0" + digest).hexdigest(),
        },
    )
    assert await store.leaf(2) is None
    assert await store.leaf(2**64) is None
    assert await store.find_bucket(HOUR, bytes(32)) == (None, [])
    assert await store.find_bucket(HOUR + 1, key) == (None, [])


async def test_receipts_that_are_issued_together_are_all_booked_and_one_leaf(store, issuer):
    async with anyio.create_task_group() as tasks:
        for number in range(300):
            one = sale(f"call_{number:032x}", reason="5xx", charged=0)
            tasks.start_soon(store.issue, IssueReceipt(issuer, one, NOW))
    booked = await store.list_booked(HOUR)
    assert len({call.receipt for call in booked}) == 300
    await append_hours(store, OVER)
    (leaf,) = await entries(store)
    assert (json.loads(leaf)["calls"], json.loads(leaf)["receipts"]) == (300, 300)
    assert (await store.sign_checkpoint(signing())).root == mth([leaf])


async def test_hours_are_appended_in_their_order_and_the_log_grows_by_nothing_else(store, event):
    for hour in (0, 0, 2):
        await store.record(event(at=NOW + 3600 * hour))
    assert (await store.head(), await store.list_hours(HOUR)) == ((None, 0, -1), [])
    assert await store.list_hours(HOUR + 2) == [HOUR]
    assert await store.list_hours(HOUR + 3) == [HOUR, HOUR + 2]
    await append_hours(store, NOW + 3 * 3600)
    assert (await store.head())[1:] == (3, HOUR + 2)
    assert await store.list_hours(HOUR + 9) == []
    leaves = [json.loads(leaf) for leaf in await entries(store)]
    assert [(leaf["hour"], leaf["seq"]) for leaf in leaves] == [
        (show_hour(HOUR), 0),
        (show_hour(HOUR), 1),
        (show_hour(HOUR + 2), 2),
    ]
    assert leaves[0]["key"] < leaves[1]["key"]


async def test_a_call_of_an_hour_that_is_in_the_log_is_booked_in_the_next(store, event):
    await store.record(event())
    await append_hours(store, OVER)
    await store.record(event())
    assert await store.list_hours(HOUR + 9) == [HOUR + 1]


async def test_an_hour_is_appended_once_as_it_is_and_by_the_one_that_holds_the_lease(store, event):
    await store.record(event())
    seen = AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER))
    await store.record(event())
    assert not await store.append(seen)  # one more was booked since
    whole = AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER))
    assert await store.take_lease(lease_at(OVER, "b", lasts_s=0.5))
    assert not await store.append(whole)
    await anyio.to_thread.run_sync(time.sleep, 0.5)  # the clock of a server is its own
    assert (await store.head()).size == 0
    whole = AppendHour.of(HOUR, await store.list_booked(HOUR), lease_at(OVER + 60))
    assert await store.append(whole)
    assert not await store.append(whole)
    assert (await store.head()).size == 2


async def test_a_checkpoint_is_the_head_until_the_next_one(store, event):
    assert await store.head() == (None, 0, -1)
    empty = await store.sign_checkpoint(signing())
    await store.record(event())
    assert await store.head() == (empty, 0, -1)
    await append_hours(store, OVER)
    assert await store.head() == (empty, 1, HOUR)
    one = await store.sign_checkpoint(signing(NOW + 60))
    assert (one.size, one.root, one.at) == (1, mth(await entries(store)), int((NOW + 60) * 1000))
    assert await store.head() == (one, 1, HOUR)


async def test_a_checkpoint_that_the_log_does_not_extend_is_refused_and_the_last_one_stays(store, event):
    await store.record(event())
    await append_hours(store, OVER)
    first = await store.sign_checkpoint(signing())

    class Refused(SignCheckpoint):
        def on(self, size, last, nodes):
            raise LogForked("on purpose")

    with pytest.raises(LogForked):
        await store.sign_checkpoint(Refused(ORIGIN, KEY, int(NOW * 1000)))
    assert await store.head() == (first, 1, HOUR)


async def test_proofs_lead_to_the_signed_roots(store, event):
    for number in range(5):
        await store.record(event(number))
    await append_hours(store, OVER)
    old = await store.sign_checkpoint(signing())
    for number in range(8):
        await store.record(event(number, at=OVER))
    await append_hours(store, OVER + 3600)
    new = await store.sign_checkpoint(signing(NOW + 60))
    leaves = await entries(store)
    assert root_from_path(leaves[3], 3, 13, await store.inclusion(3, 13)) == new.root
    assert consistent(5, 13, old.root, new.root, await store.consistency(5, 13))
    for index, size in [(13, 13), (0, 14), (-1, 5), (0, 0), (2**70, 2**70)]:
        assert await store.inclusion(index, size) is None
    for first, second in [(0, 5), (5, 14), (6, 5), (2**70, 2**70)]:
        assert await store.consistency(first, second) is None


async def test_tiles_hold_entries_and_hashes_as_far_as_the_log_goes(store, event):
    for number in range(258):
        await store.record(event(number))
    await append_hours(store, OVER)
    leaves = await entries(store)
    assert unbundled(await store.tile(Tile(None, 0, 256))) == leaves[:256]
    assert unbundled(await store.tile(Tile(None, 1, 2))) == leaves[256:]
    assert (await store.tile(Tile(0, 1, 2)))[:32] == hashlib.sha256(b"\0" + leaves[256]).digest()
    assert await store.tile(Tile(1, 0, 1)) == mth(leaves[:256])
    for missing in (Tile(None, 1, 3), Tile(0, 1, 256), Tile(1, 0, 2), Tile(0, 2, 1)):
        assert await store.tile(missing) is None


async def test_days_are_summed_and_show_their_last_calls_whether_they_are_in_the_log_or_not(store, event):
    for number in range(4):
        await store.record(event(number, at=NOW + number))
    await store.record(event(reason="stale_data", at=NOW + 86400))
    for in_log in (False, True):
        sums, shown, waiting = await store.day("2027-01-15", 3)
        assert sorted(tuple(row)[1:] for row in sums) == [
            ("5xx", "/api/pro/0", 2, 4),
            ("5xx", "/api/pro/1", 1, 2),
            ("5xx", "/api/pro/2", 1, 2),
        ]
        assert [call.at for call in shown] == [int((NOW + number) * 1000) for number in (3, 2, 1)]
        assert [call.seq is None for call in shown] == [not in_log] * 3
        assert waiting == (1 if in_log else 5)
        assert await store.day("1999-12-31", 3) == ([], [], waiting)
        assert await store.days(10) == [("2027-01-16", 1), ("2027-01-15", 4)]
        assert await store.days(1) == [("2027-01-16", 1)]
        await append_hours(store, OVER)


async def test_a_day_is_the_sum_of_its_hours_in_the_log_and_those_that_are_not(store, event):
    for hours in (0, 1):
        await store.record(event(at=NOW + 3600 * hours))
        await store.record(event(1, at=NOW + 3600 * hours))
        if not hours:
            await append_hours(store, OVER)
    sums, shown, waiting = await store.day("2027-01-15", 10)
    assert sorted((row.endpoint, row.calls, row.credits) for row in sums) == [
        ("/api/pro/0", 2, 4),
        ("/api/pro/1", 2, 4),
    ]
    assert [call.seq is None for call in shown] == [True, True, False, False]
    assert (waiting, await store.days(5)) == (2, [("2027-01-15", 4)])


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


@pytest.mark.parametrize("kind", ["memory", "sqlite"])  # instances that share a database go by its clock
async def test_an_hour_is_appended_once_and_as_it_is_by_the_one_that_holds_the_lease(tmp_path, event, kind):
    async with open_store(kind, tmp_path) as store:
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
