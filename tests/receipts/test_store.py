"""What every receipt store promises: one receipt per sale, a leaf with each uncharged call, proofs that hold."""

import hashlib
import json

import anyio
import pytest

from tests.calls.parts import START
from tests.receipts.stores import KINDS, open_store
from tests.receipts.test_merkle import consistent, mth, root_from_path, unbundled
from toolserver.clock import ManualClock
from toolserver.receipts.issue import IssueReceipt, ReceiptIssuer, RecordUncharged
from toolserver.receipts.keys import KeyRing, make_key
from toolserver.receipts.log_state import LogForked, SignCheckpoint, UnchargedCall
from toolserver.receipts.merkle import Tile
from toolserver.receipts.sign import Body, Sale

NOW = START.timestamp()
ORIGIN = "data.example/log"
KEY = make_key()


@pytest.fixture(params=KINDS)
async def store(request, tmp_path):
    async with open_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture
def issuer(tmp_path):
    return ReceiptIssuer(KeyRing(tmp_path / "keys.json", ManualClock(START)), service="data.example", origin=ORIGIN)


def sale(call="call_" + "1" * 32, *, reason=None, charged=2, body="a" * 64):
    request = "GET /api/pro/x"
    return Sale(call, "f" * 64, "/api/pro/x", request, 2, charged, 98, reason=reason, body=Body(body, 10))


def event(number=0, *, at=NOW, reason="5xx"):
    return RecordUncharged(UnchargedCall(at, reason, f"/api/pro/{number % 3}", 2))


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


async def test_the_receipt_of_an_uncharged_call_names_its_leaf_and_the_leaf_its_receipt(store, issuer):
    await store.record(event())
    receipt = await store.issue(IssueReceipt(issuer, sale(reason="5xx", charged=0), NOW))
    leaf = json.loads(await store.leaf(1))
    assert json.loads(receipt.core)["log"] == {"origin": ORIGIN, "index": 1}
    assert leaf == {
        "seq": 1,
        "ts": "2027-01-15T08:00:00.000Z",
        "reason": "5xx",
        "endpoint": "/api/pro/x",
        "credits": 2,
        "receipt_sha256": hashlib.sha256(receipt.core).hexdigest(),
    }
    assert await store.leaf(2) is None
    assert await store.leaf(2**64) is None


async def test_receipts_that_are_issued_together_have_leaves_of_their_own(store, issuer):
    async with anyio.create_task_group() as tasks:
        for number in range(300):
            one = sale(f"call_{number:032x}", reason="5xx", charged=0)
            tasks.start_soon(store.issue, IssueReceipt(issuer, one, NOW))
    leaves = await entries(store)
    assert [json.loads(leaf)["seq"] for leaf in leaves] == list(range(300))
    assert len({json.loads(leaf)["receipt_sha256"] for leaf in leaves}) == 300
    assert (await store.sign_checkpoint(signing())).root == mth(leaves)


async def test_a_checkpoint_is_the_head_until_the_next_one(store):
    assert await store.head() == (None, 0)
    empty = await store.sign_checkpoint(signing())
    await store.record(event())
    assert await store.head() == (empty, 1)
    one = await store.sign_checkpoint(signing(NOW + 60))
    assert (one.size, one.root, one.at) == (1, mth(await entries(store)), int((NOW + 60) * 1000))
    assert await store.head() == (one, 1)


async def test_a_checkpoint_that_the_log_does_not_extend_is_refused_and_the_last_one_stays(store, monkeypatch):
    await store.record(event())
    first = await store.sign_checkpoint(signing())

    def refuse(*given):
        raise LogForked("on purpose")

    monkeypatch.setattr(SignCheckpoint, "on", refuse)
    with pytest.raises(LogForked):
        await store.sign_checkpoint(signing())
    assert await store.head() == (first, 1)


async def test_proofs_lead_to_the_signed_roots(store):
    for number in range(5):
        await store.record(event(number))
    old = await store.sign_checkpoint(signing())
    for number in range(8):
        await store.record(event(number))
    new = await store.sign_checkpoint(signing(NOW + 60))
    leaves = await entries(store)
    assert root_from_path(leaves[3], 3, 13, await store.inclusion(3, 13)) == new.root
    assert consistent(5, 13, old.root, new.root, await store.consistency(5, 13))
    for index, size in [(13, 13), (0, 14), (-1, 5), (0, 0), (2**70, 2**70)]:
        assert await store.inclusion(index, size) is None
    for first, second in [(0, 5), (5, 14), (6, 5), (2**70, 2**70)]:
        assert await store.consistency(first, second) is None


async def test_tiles_hold_entries_and_hashes_as_far_as_the_log_goes(store):
    for number in range(258):
        await store.record(event(number))
    leaves = await entries(store)
    assert unbundled(await store.tile(Tile(None, 0, 256))) == leaves[:256]
    assert unbundled(await store.tile(Tile(None, 1, 2))) == leaves[256:]
    assert (await store.tile(Tile(0, 1, 2)))[:32] == hashlib.sha256(b"\0" + leaves[256]).digest()
    assert await store.tile(Tile(1, 0, 1)) == mth(leaves[:256])
    for missing in (Tile(None, 1, 3), Tile(0, 1, 256), Tile(1, 0, 2), Tile(0, 2, 1)):
        assert await store.tile(missing) is None


async def test_days_are_summed_and_show_their_last_leaves(store):
    for number in range(4):
        await store.record(event(number))
    await store.record(event(reason="stale_data", at=NOW + 86400))
    sums, shown = await store.day("2027-01-15", 3)
    assert sorted(tuple(row)[1:] for row in sums) == [
        ("5xx", "/api/pro/0", 2, 4),
        ("5xx", "/api/pro/1", 1, 2),
        ("5xx", "/api/pro/2", 1, 2),
    ]
    assert [json.loads(entry)["seq"] for entry in shown] == [3, 2, 1]
    assert await store.day("1999-12-31", 3) == ([], [])
    assert await store.days(10) == [("2027-01-16", 1), ("2027-01-15", 4)]
    assert await store.days(1) == [("2027-01-16", 1)]
