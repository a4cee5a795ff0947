import asyncio
from datetime import UTC, datetime

import pytest

from toolserver.clock import ManualClock
from toolserver.sql.sqlite import in_memory
from toolserver.webhooks.fire_worker import AGAIN_MS, KEPT, PayloadShelf
from toolserver.webhooks.store import WebhookStore


class CountingStore(WebhookStore):
    """A store that counts."""

    def __init__(self, file):
        super().__init__(file)
        self.saved, self.read = [], []

    async def save_payload(self, digest, body, now):
        self.saved.append(digest)
        await asyncio.sleep(0)
        await super().save_payload(digest, body, now)

    async def payload(self, digest):
        self.read.append(digest)
        return await super().payload(digest)


@pytest.fixture
async def store():
    async with in_memory() as file:
        yield CountingStore(file)


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 1, tzinfo=UTC))


async def test_a_payload_that_many_share_is_stored_once_and_again_while_it_is_used(store, clock):
    shelf = PayloadShelf(store, clock)
    for _ in range(5):
        await shelf.put("d", b"body")
    assert (store.saved, await shelf.get("d"), store.read) == (["d"], b"body", [])
    clock.advance(AGAIN_MS / 1000)
    await shelf.put("d", b"body")
    clock.advance(-86_400)
    await shelf.put("d", b"body")
    assert store.saved == ["d"] * 3


async def test_those_who_come_at_once_share_one_write(store, clock):
    shelf = PayloadShelf(store, clock)
    await asyncio.gather(*(shelf.put("d", b"body") for _ in range(20)))
    assert store.saved == ["d"]


async def test_after_a_restart_it_is_read_from_the_store_once(store, clock):
    await PayloadShelf(store, clock).put("d", b"body")
    shelf = PayloadShelf(store, clock)
    assert [await shelf.get("d") for _ in range(3)] == [b"body"] * 3
    assert store.read == ["d"]
    assert await shelf.get("nothing") is None


async def test_what_was_only_read_is_stored_when_it_is_put(store, clock):
    await PayloadShelf(store, clock).put("d", b"body")
    shelf = PayloadShelf(store, clock)
    await shelf.get("d")
    await shelf.put("d", b"body")
    assert store.saved == ["d", "d"]


async def test_the_memory_is_bounded(store, clock):
    shelf = PayloadShelf(store, clock)
    for number in range(KEPT + 5):
        await shelf.put(str(number), b"body")
    assert await shelf.get("0") == b"body"
    assert store.read == ["0"]
