"""The store in memory is the one under the contract of `test_store`; what is its own is that it keeps nothing."""

import pytest

from tests.calls.parts import START
from tests.receipts.stores import open_store
from toolserver.clock import ManualClock
from toolserver.receipts.issue import RecordUncharged
from toolserver.receipts.keys import KeyRing
from toolserver.receipts.log_buckets import BucketNamer, UnchargedCall


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
