"""The rules of issuing: which sale gets which receipt, and which leaf it names."""

import hashlib
import json
import re
from dataclasses import replace

import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.money.receipts.issue import IssueReceipt, ReceiptIssuer, ReceiptState, RecordUncharged
from toolserver.money.receipts.keys import KeyRing, b64, make_key
from toolserver.money.receipts.log import BucketNamer, UnchargedCall, hour_at
from toolserver.money.receipts.sign import Body, Sale, StoredReceipt, receipt_id

NOW = START.timestamp()
SALE = Sale("call_1", "f" * 64, "/x", "GET /x", 2, 2, 98, body=Body("a" * 64, 10))
UNCHARGED = SALE._replace(call_id="call_2", charged=0, reason="5xx", status=503)


@pytest.fixture
def ring(tmp_path):
    return KeyRing(tmp_path / "keys.json", ManualClock(START))


@pytest.fixture
def issuer(ring):
    return ReceiptIssuer(ring, service="data.example", origin="o", buckets=BucketNamer(ring))


def test_a_new_receipt_is_added_under_the_id_of_its_call(issuer):
    state = ReceiptState()
    receipt = IssueReceipt(issuer, SALE, NOW).on(state)
    assert receipt.id == receipt_id("call_1")
    assert (receipt.owner, receipt.at) == ("f" * 64, int(NOW * 1000))
    assert json.loads(receipt.core)["issued_at"] == "2027-01-15T08:00:00.000Z"
    assert [new.receipt for new in state.new_receipts] == [receipt]
    assert json.loads(receipt.core)["log"] is None
    assert state.new_calls == []


def test_the_same_sale_in_one_group_gets_one_receipt(issuer):
    state = ReceiptState()
    assert IssueReceipt(issuer, SALE, NOW).on(state) is IssueReceipt(issuer, SALE, NOW + 1).on(state)
    assert len(state.new_receipts) == 1


@pytest.mark.parametrize(
    "other",
    [
        SALE._replace(body=Body("b" * 64, 10)),
        SALE._replace(charged=0, reason="cancelled"),
        SALE._replace(pending=True),
        SALE._replace(body=None),
    ],
)
def test_a_sale_that_the_stored_receipt_does_not_describe_gets_a_new_id(issuer, other):
    state = ReceiptState()
    first = IssueReceipt(issuer, SALE, NOW).on(state)
    second = IssueReceipt(issuer, other, NOW).on(state)
    assert second.id != first.id
    assert re.fullmatch("rcpt_[0-9a-f]{32}", second.id)
    assert [new.receipt.id for new in state.new_receipts] == [first.id, second.id]


def test_a_body_that_names_its_receipt_is_signed_with_the_id_that_the_receipt_gets(issuer):
    state = ReceiptState()

    def body(text):
        return lambda id: Body(f"{text} {id}", len(id))

    def signed(receipt):
        return json.loads(receipt.core)["response_sha256"]

    first = IssueReceipt(issuer, SALE._replace(body=body("one")), NOW).on(state)
    again = IssueReceipt(issuer, SALE._replace(body=body("one")), NOW).on(state)
    other = IssueReceipt(issuer, SALE._replace(body=body("two")), NOW).on(state)
    assert again is first
    assert other.id != first.id == receipt_id("call_1")
    assert (signed(first), signed(other)) == (f"one {first.id}", f"two {other.id}")


def test_an_uncharged_call_is_booked_in_the_bucket_that_its_receipt_names(issuer):
    state = ReceiptState()
    hung_up = UnchargedCall(NOW, SALE.owner, "cancelled", "/x", 2)
    RecordUncharged(issuer.buckets, hung_up).on(state)
    receipt = IssueReceipt(issuer, UNCHARGED, NOW).on(state)
    bucket = issuer.buckets.name(hung_up._replace(reason="5xx"), hour_at(NOW))
    digest = hashlib.sha256(receipt.core).digest()
    assert json.loads(receipt.core)["log"] == bucket.place("o")
    first, second = state.new_calls
    assert (first.reason, first.receipt, first.credits, first.at) == ("cancelled", None, 2, int(NOW * 1000))
    assert second == (hour_at(NOW), bucket.key, "5xx", "/x", 2, digest, int(NOW * 1000))


@pytest.mark.parametrize(("closed", "hour"), [(-1, 0), (-2, 0), (0, 1), (5, 6)])
def test_no_call_is_booked_in_an_hour_that_is_in_the_log(issuer, closed, hour):
    state = ReceiptState(closed=hour_at(NOW) + closed)
    IssueReceipt(issuer, UNCHARGED, NOW + 1800).on(state)
    assert state.new_calls[0].hour == hour_at(NOW) + hour


def test_a_receipt_is_shown_with_a_signature_only_while_its_key_can_sign(issuer, ring):
    receipt = IssueReceipt(issuer, SALE, NOW).on(ReceiptState())
    key = ring.current()
    assert receipt.show(key)["key_id"] == key.kid
    assert "signature" not in receipt.show(replace(key, seed=None))
    assert "signature" not in receipt.show(None)


def test_a_pending_charge_is_described_as_nothing_charged_yet(issuer):
    state = ReceiptState()
    pending = SALE._replace(pending=True)
    receipt = IssueReceipt(issuer, pending, NOW).on(state)
    assert receipt.fits(pending)
    assert receipt.fits(SALE._replace(charged=0))
    assert not receipt.fits(SALE)
    assert IssueReceipt(issuer, pending, NOW + 9).on(state) is receipt


def test_a_stored_receipt_is_signed_by_the_key_in_use_over_its_own_core(issuer, ring):
    receipt = IssueReceipt(issuer, SALE, NOW).on(ReceiptState())
    key = ring.current()
    assert receipt.is_signed_by(key)
    assert not receipt._replace(core=receipt.core.replace(b'"cost":2', b'"cost":3')).is_signed_by(key)
    assert not receipt.is_signed_by(make_key())
    assert receipt.jws.split(".")[1] == b64(receipt.core)
    assert receipt.show(None) == json.loads(receipt.core)


def test_an_uncharged_call_without_a_receipt_is_booked_with_what_it_would_have_cost(issuer):
    state = ReceiptState()
    call = UnchargedCall(NOW + 0.5, SALE.owner, "cancelled", "/x", 7)
    RecordUncharged(issuer.buckets, call).on(state)
    bucket = issuer.buckets.name(call, hour_at(NOW))
    assert state.new_calls == [(hour_at(NOW), bucket.key, "cancelled", "/x", 7, None, int(NOW * 1000) + 500)]
    assert state.new_receipts == []


def test_a_repeated_uncharged_sale_is_booked_once(issuer):
    state = ReceiptState()
    for late in (0, 5):
        IssueReceipt(issuer, UNCHARGED, NOW + late).on(state)
    assert (len(state.new_receipts), len(state.new_calls)) == (1, 1)
    assert isinstance(state.receipts[receipt_id("call_2")], StoredReceipt)
