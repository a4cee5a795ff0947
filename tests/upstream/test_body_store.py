"""Without a store nothing is kept."""

from tests.calls.parts import START
from toolserver.upstream.body_store import NoStore, StoredBody


async def test_a_store_that_keeps_nothing_finds_nothing():
    store = NoStore()
    store.save("a", "k", StoredBody(b"{}", START), keep_s=60)
    store.renew("a", "k", START)
    assert await store.load("a", "k") is None
