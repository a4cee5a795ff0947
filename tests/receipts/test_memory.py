"""The store in memory is the one under the contract of `test_store`; what is its own is that it keeps nothing."""

from tests.receipts.stores import open_store
from toolserver.receipts.issue import RecordUncharged
from toolserver.receipts.log_state import UnchargedCall


async def test_nothing_outlives_the_object(tmp_path):
    for _ in range(2):
        async with open_store("memory", tmp_path) as store:
            assert await store.head() == (None, 0)
            await store.record(RecordUncharged(UnchargedCall(0.0, "5xx", "/x", 1)))
            assert (await store.head()).size == 1


async def test_a_leaf_that_cannot_be_added_changes_nothing(tmp_path):
    async with open_store("memory", tmp_path) as store:
        try:
            await store.record(RecordUncharged(UnchargedCall(float("inf"), "5xx", "/x", 1)))
        except OverflowError:
            pass
        assert await store.head() == (None, 0)
        assert await store.days(5) == []
