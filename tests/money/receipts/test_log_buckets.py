"""Buckets: how they are named, what their leaves say, and how a receipt is shown to be in one."""

import hashlib
import json

import pytest

from tests.calls.parts import START
from tests.money.receipts.test_merkle import mth, root_from_path
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import (
    CLOSE_AFTER_S,
    HOUR_S,
    NOT_YET,
    BookedCall,
    BucketNamer,
    UnchargedCall,
    add_up,
    closes_at,
    day_of,
    hour_at,
    hours_of,
    open_bucket,
    prove_receipt,
    read_hour,
    show_hour,
    sort_receipts,
)

NOW = START.timestamp()
HOUR = hour_at(NOW)
CALL = UnchargedCall(NOW, "f" * 64, "5xx", "/x", 2)


@pytest.fixture
def namer(tmp_path):
    return BucketNamer(KeyRing(tmp_path / "log.json", ManualClock(START)))


def booked(key, number=0, receipt=True, *, hour=HOUR, credits=2):
    digest = hashlib.sha256(bytes([number])).digest() if receipt else None
    return BookedCall(hour, key * 32, "5xx", "/x", credits, digest, int(NOW * 1000))


@proves("no-charge-log.leaves")
def test_a_bucket_is_one_token_tool_reason_and_hour(namer):
    same = namer.name(CALL, HOUR)
    assert namer.name(CALL._replace(at=NOW + 9, credits=7, receipt_sha256="0" * 64), HOUR) == same
    others = [{"owner": "e" * 64}, {"reason": "stale_data"}, {"endpoint": "/y"}]
    found = [namer.name(CALL._replace(**other), HOUR) for other in others] + [namer.name(CALL, HOUR + 1)]
    assert len({bucket.key for bucket in [same, *found]}) == len({bucket.salt for bucket in [same, *found]}) == 5


def test_every_process_of_a_service_names_it_alike_and_another_service_does_not(tmp_path):
    one, two = (BucketNamer(KeyRing(tmp_path / "log.json", ManualClock(START))) for _ in range(2))
    stranger = BucketNamer(KeyRing(tmp_path / "other.json", ManualClock(START)))
    assert one.name(CALL, HOUR) == two.name(CALL, HOUR) != stranger.name(CALL, HOUR)


def test_the_key_is_a_hash_that_the_documentation_says_how_to_make(namer):
    bucket = namer.name(CALL, HOUR)
    text = (
        f'{{"endpoint":"/x","hour":"2027-01-15T08:00:00Z","reason":"5xx","salt":"{bucket.salt.hex()}",'
        f'"token":"{"f" * 64}"}}'
    )
    assert hashlib.sha256(text.encode()).digest() == bucket.key
    assert open_bucket("f" * 64, "/x", "5xx", HOUR, bucket.salt) == bucket.key
    assert bucket.place("o") == {
        "origin": "o",
        "hour": "2027-01-15T08:00:00Z",
        "key": bucket.key.hex(),
        "salt": bucket.salt.hex(),
    }


def test_hours_are_written_and_read_in_one_way_only():
    assert (show_hour(HOUR), read_hour("2027-01-15T08:00:00Z"), day_of(HOUR)) == (
        "2027-01-15T08:00:00Z",
        HOUR,
        "2027-01-15",
    )
    for text in ("", "2027-01-15T08:30:00Z", "2027-1-15T08:00:00Z", "2027-01-15T08:00:00", "2027-02-30T08:00:00Z"):
        assert read_hour(text) is None
    assert hours_of("2027-01-15") == range(HOUR - 8, HOUR + 16)
    assert closes_at(HOUR) == NOW + 3660
    assert [hour_at(NOW + late) for late in (-1, 0, 3599, 3600)] == [HOUR - 1, HOUR, HOUR, HOUR + 1]
    assert (HOUR_S, CLOSE_AFTER_S, NOT_YET) == (3600, 60.0, -1)


def test_calls_add_up_to_a_leaf_for_each_bucket_in_an_order_that_says_nothing():
    calls = [
        booked(b"c", 1),
        booked(b"a", 2, receipt=False),
        booked(b"c", 3, credits=5),
        booked(b"b", 4, hour=HOUR + 1),
    ]
    totals = add_up(calls)
    assert totals == add_up(calls[::-1])
    assert [(total.hour, total.key[:1], total.calls, total.credits, total.receipts) for total in totals] == [
        (HOUR, b"a", 1, 2, 0),
        (HOUR, b"c", 2, 7, 2),
        (HOUR + 1, b"b", 1, 2, 1),
    ]
    assert [total.root for total in totals] == [
        None,
        mth(sort_receipts([calls[0].receipt, calls[2].receipt])),
        mth([calls[3].receipt]),
    ]
    assert json.loads(totals[0].entry(7)) == {
        "v": 2,
        "seq": 7,
        "hour": "2027-01-15T08:00:00Z",
        "key": (b"a" * 32).hex(),
        "reason": "5xx",
        "endpoint": "/x",
        "calls": 1,
        "credits": 2,
        "receipts": 0,
        "receipts_root": None,
    }
    assert json.loads(totals[1].entry(8))["receipts_root"] == totals[1].root.hex()
    assert add_up([]) == []


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_each_receipt_of_a_bucket_can_be_shown_to_be_in_its_leaf_and_no_other(count):
    calls = [booked(b"a", number) for number in range(count)]
    (total,) = add_up(calls)
    digests = sort_receipts(call.receipt for call in calls)
    for digest in digests:
        found = prove_receipt(digests, digest)
        assert root_from_path(digest, found.place, found.size, found.path) == total.root
    assert found.show() == {"index": count - 1, "size": count, "path": [step.hex() for step in found.path]}
    assert prove_receipt(digests, bytes(32)) is None
