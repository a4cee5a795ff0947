"""Store webhooks in SQLite, in the ledger's file. Concurrent operations share an fsync."""

from collections.abc import Sequence
from typing import Any, TypeVar

import zstandard

from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.records import WebhookFire, WebhookSubscription
from toolserver.webhooks.sql_tables import SqlTables
from toolserver.webhooks.tables import WebhookOperation

R = TypeVar("R")

ROOM = "webhooks"  # the lock for changing and claiming subscriptions and fires: one instance at a time
LEVEL = 3
MOST_PAYLOAD = 4 * 1024 * 1024


class SqlWebhookStore:
    """A `WebhookStore` over a file with group commit."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def apply(self, operation: WebhookOperation[R]) -> R:
        outcome: R = await self._file.together(_apply_group, operation, room=ROOM)
        return outcome

    async def subscription(self, id: str) -> WebhookSubscription | None:
        return await self._file.read(lambda db: SqlTables(db).find(id))

    async def owned(self, owner: str) -> list[WebhookSubscription]:
        return await self._file.read(lambda db: SqlTables(db).list_reached(owner))

    async def all(self, limit: int, state: str | None = None) -> list[WebhookSubscription]:
        return await self._file.read(lambda db: SqlTables(db).list_all(limit, state))

    async def fire(self, id: str) -> WebhookFire | None:
        return await self._file.read(lambda db: SqlTables(db).find_fire(id))

    async def fires(self, subscription: str, limit: int, before: str | None = None) -> list[WebhookFire]:
        return await self._file.read(lambda db: SqlTables(db).list_fires(subscription, limit, before))

    async def next_due(self) -> int | None:
        return await self._file.read(lambda db: SqlTables(db).next_due())

    async def save_payload(self, digest: str, body: bytes, now: int) -> None:
        packed = zstandard.ZstdCompressor(level=LEVEL).compress(body)
        await self._file.alone(lambda db: SqlTables(db).save_payload(digest, packed, now), room=ROOM)

    async def payload(self, digest: str) -> bytes | None:
        packed = await self._file.read(lambda db: SqlTables(db).find_payload(digest))
        return None if packed is None else zstandard.ZstdDecompressor().decompress(packed, MOST_PAYLOAD)

    async def forget_payloads(self, before: int) -> int:
        return await self._file.alone(lambda db: SqlTables(db).forget_payloads(before), room=ROOM)


def _apply_group(db: SqlConnection, group: Sequence[WebhookOperation[Any]]) -> list[Any]:
    """Return the outcomes of a group, including refusals. Any other failure fails the group; each is then retried."""
    tables = SqlTables(db)
    return [_outcome(operation, tables) for operation in group]


def _outcome(operation: WebhookOperation[Any], tables: SqlTables) -> Any:
    try:
        return operation.on(tables)
    except ToolserverError as refusal:
        return refusal
