"""Store the payloads of open fires, once however many fires share one, and serve recent ones from memory."""

from collections import OrderedDict
from functools import partial
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.core.single_flight import SingleFlight
from toolserver.webhooks.store import PAYLOAD_KEPT_MS, WebhookStore

KEPT = 64
AGAIN_MS = PAYLOAD_KEPT_MS // 6  # how often a payload that is still in use is stored again, so that it is kept


class _Shelved(NamedTuple):
    body: bytes
    stored_at: int


class PayloadShelf:
    """A store's payloads, with the latest also in memory."""

    def __init__(self, store: WebhookStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._shelved: OrderedDict[str, _Shelved] = OrderedDict()
        self._saves = SingleFlight()

    async def put(self, digest: str, body: bytes) -> None:
        """Keep a payload for at least fifty minutes from now. It is on disk when this returns."""
        now = int(self._clock.time() * 1000)
        shelved = self._shelved.get(digest)
        if shelved is None or not 0 <= now - shelved.stored_at < AGAIN_MS:
            await self._saves.do(digest, partial(self._save, digest, _Shelved(body, now)))

    async def _save(self, digest: str, shelved: _Shelved) -> None:
        await self._store.save_payload(digest, shelved.body, shelved.stored_at)
        self._shelve(digest, shelved)

    async def get(self, digest: str) -> bytes | None:
        """Return a payload; None if it is no longer kept."""
        shelved = self._shelved.get(digest)
        if shelved is not None:
            return shelved.body
        body = await self._store.payload(digest)
        if body is not None:
            self._shelve(digest, _Shelved(body, -AGAIN_MS))
        return body

    def _shelve(self, digest: str, shelved: _Shelved) -> None:
        self._shelved[digest] = shelved
        self._shelved.move_to_end(digest)
        if len(self._shelved) > KEPT:
            self._shelved.popitem(last=False)
