"""Store subscriptions, fires and their payloads: what operations see of a transaction, the SQL of both engines, and the
store over the file of the ledger, whose concurrent operations share a commit.
"""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from toolserver.errors import ToolserverError
from toolserver.money.ledger.owner_limits import AlertCrossing
from toolserver.money.ledger.sql_tables import take_crossings
from toolserver.sql.connection import SqlConnection, for_change, in_order, is_shared, unclaimed
from toolserver.sql.group_commit import TOGETHER, GroupCommit
from toolserver.webhooks.records import (
    FAR_FAILING_MS,
    FAR_MS,
    SLOT_MS,
    PayerCounts,
    UnpaidBody,
    WebhookFire,
    WebhookSubscription,
)

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

PAYLOAD_KEPT_MS = 3_600_000


_SUBSCRIPTION = ", ".join(WebhookSubscription._fields)
_FIRE = ", ".join(WebhookFire._fields)
_OPEN = "state IN ('open', 'accepted')"
_FAILING = "(consecutive_failures > 0 OR slow > 0)"  # the first column of an index
_FAILING_ON_SERVER = "(CASE WHEN consecutive_failures > 0 OR slow > 0 THEN 1 ELSE 0 END)"
_DUE = f"state = 'active' AND {_FAILING}"


def _insert(table: str, fields: Sequence[str]) -> str:
    return f"INSERT INTO {table}({', '.join(fields)}) VALUES({', '.join('?' * len(fields))})"


def _update(table: str, fields: Sequence[str]) -> str:
    return f"UPDATE {table} SET {', '.join(f'{name}=?' for name in fields[1:])} WHERE id=?"


ADD_SUBSCRIPTION = _insert("webhook_subscription", WebhookSubscription._fields)
SAVE_SUBSCRIPTION = _update("webhook_subscription", WebhookSubscription._fields)
ADD_FIRE = _insert("webhook_fire", WebhookFire._fields).removesuffix("?)") + (
    "(SELECT coalesce(max(seq), 0) + 1 FROM webhook_fire WHERE subscription = ?2))"
)

COUNT_PAYER = """INSERT INTO webhook_payer(payer, paid, refused, free)
  VALUES(?1, ?2, CASE WHEN ?3 > 0 THEN ?3 ELSE 0 END, CASE WHEN ?4 > 0 THEN ?4 ELSE 0 END)
  ON CONFLICT(payer) DO UPDATE SET paid = webhook_payer.paid + ?2,
    refused = CASE WHEN webhook_payer.refused + ?3 > 0 THEN webhook_payer.refused + ?3 ELSE 0 END,
    free = CASE WHEN webhook_payer.free + ?4 > 0 THEN webhook_payer.free + ?4 ELSE 0 END"""
ADD_UNPAID = _insert("webhook_unpaid", UnpaidBody._fields)
SAVE_FIRE = _update("webhook_fire", WebhookFire._fields)
CLAIM_SUBSCRIPTIONS = f"""UPDATE webhook_subscription
  SET due_at = CAST(?1 AS bigint) + {SLOT_MS} - ((?1 - created_at) % {SLOT_MS} + {SLOT_MS}) % {SLOT_MS}
  WHERE id {{}} RETURNING {_SUBSCRIPTION}"""
DUE_SUBSCRIPTIONS = f"""SELECT id FROM webhook_subscription WHERE {_DUE} = ?3 AND due_at <= ?1
  ORDER BY due_at LIMIT ?2"""
CLAIM_FIRES = f"UPDATE webhook_fire SET due_at = ?4, claims = claims + 1 WHERE id {{}} RETURNING {_FIRE}"
DUE_FIRES = f"""SELECT id FROM webhook_fire WHERE {_OPEN} AND lane = ?2 AND due_at <= ?1
  ORDER BY due_at, id LIMIT ?3"""
TRIM_FIRES = f"""DELETE FROM webhook_fire WHERE subscription = ?1 AND NOT {_OPEN} AND seq <=
  (SELECT seq FROM webhook_fire WHERE subscription = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)"""
FORGET_PAYLOADS = f"""DELETE FROM webhook_payload WHERE created_at < ?
  AND digest NOT IN (SELECT payload FROM webhook_fire INDEXED BY webhook_fire_due
    WHERE {_OPEN} AND payload IS NOT NULL)"""
NEXT_DUE = f"""SELECT min(due_at) FROM (
  SELECT min(due_at) AS due_at FROM webhook_subscription WHERE {_DUE} = 0
  UNION ALL SELECT min(due_at) FROM webhook_subscription WHERE {_DUE} = 1
  UNION ALL SELECT min(due_at) FROM webhook_fire WHERE {_OPEN} AND lane = 0
  UNION ALL SELECT min(due_at) FROM webhook_fire WHERE {_OPEN} AND lane = 1
  UNION ALL SELECT min(due_at) FROM webhook_fire WHERE {_OPEN} AND lane = 2
  UNION ALL SELECT min(crossed_at) FROM owner_alert) AS next"""


class WebhookTables:
    """The rows, as operations see them."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def _spell(self, sql: str) -> str:
        """Adapt a statement to the connection's engine, so that it uses the intended index."""
        return in_order(self._db, sql.replace(_FAILING, _FAILING_ON_SERVER) if is_shared(self._db) else sql)

    def _subscriptions(self, sql: str, *parameters: Any) -> list[WebhookSubscription]:
        rows = self._db.execute(self._spell(f"SELECT {_SUBSCRIPTION} FROM webhook_subscription {sql}"), parameters)
        return [WebhookSubscription(*row) for row in rows]

    def _fires(self, sql: str, *parameters: Any) -> list[WebhookFire]:
        return [WebhookFire(*row) for row in self._db.execute(f"SELECT {_FIRE} FROM webhook_fire {sql}", parameters)]

    def find(self, id: str) -> WebhookSubscription | None:
        return next(iter(self._subscriptions("WHERE id=?", id)), None)

    def find_for_change(self, id: str) -> WebhookSubscription | None:
        """Find a subscription, which no other instance changes until the transaction ends."""
        return next(iter(self._subscriptions(for_change(self._db, "WHERE id=?"), id)), None)

    def list_paid_by(self, payer: str) -> list[WebhookSubscription]:
        return self._subscriptions("WHERE payer=? ORDER BY created_at, id", payer)

    def list_reached(self, owner: str) -> list[WebhookSubscription]:
        return self._subscriptions("WHERE owner=?1 OR payer=?1 ORDER BY created_at, id", owner)

    def move_owner(self, before: str, after: str) -> None:
        """Move the subscriptions that a token owns or pays for to another token, both given by their SHA-256."""
        for column in ("owner", "payer"):
            self._db.execute(f"UPDATE webhook_subscription SET {column}=? WHERE {column}=?", (after, before))
            self._db.execute(f"UPDATE webhook_unpaid SET {column}=? WHERE {column}=?", (after, before))
        self.count_payer(after, self.find_payer(before))
        self._db.execute("DELETE FROM webhook_payer WHERE payer=?", (before,))

    def list_all(self, limit: int, state: str | None) -> list[WebhookSubscription]:
        return self._subscriptions(
            "WHERE CAST(?1 AS TEXT) IS NULL OR state=?1 ORDER BY created_at DESC, id LIMIT ?2", state, limit
        )

    def add(self, subscription: WebhookSubscription) -> None:
        self._db.execute(ADD_SUBSCRIPTION, subscription)

    def save(self, subscription: WebhookSubscription) -> None:
        self._db.execute(SAVE_SUBSCRIPTION, (*subscription[1:], subscription.id))

    def remove(self, id: str) -> None:
        self._db.execute("DELETE FROM webhook_fire WHERE subscription=?", (id,))
        self._db.execute("DELETE FROM webhook_subscription WHERE id=?", (id,))

    def take_crossings(self, limit: int) -> list[tuple[str, AlertCrossing]]:
        """Remove crossings of owners' thresholds from the ledger's list, and return them, each with its payer."""
        return take_crossings(self._db, limit)

    def claim_due(self, now: int, limit: int, *, failing: bool) -> list[WebhookSubscription]:
        sql = CLAIM_SUBSCRIPTIONS.format(unclaimed(self._db, self._spell(DUE_SUBSCRIPTIONS)))
        rows = self._db.execute(sql, (now, limit, int(failing))).fetchall()
        return sorted((WebhookSubscription(*row) for row in rows), key=lambda claimed: (claimed.created_at, claimed.id))

    def find_fire(self, id: str) -> WebhookFire | None:
        return next(iter(self._fires("WHERE id=?", id)), None)

    def find_fire_for_change(self, id: str) -> WebhookFire | None:
        """Find a fire, which no other instance changes until the transaction ends. Lock it before its subscription."""
        return next(iter(self._fires(for_change(self._db, "WHERE id=?"), id)), None)

    def list_fires(self, subscription: str, limit: int, before: str | None) -> list[WebhookFire]:
        return self._fires(
            "WHERE subscription=?1 AND (CAST(?3 AS TEXT) IS NULL OR seq < (SELECT seq FROM webhook_fire WHERE id=?3)) "
            "ORDER BY seq DESC LIMIT ?2",
            subscription,
            limit,
            before,
        )

    def add_fire(self, fire: WebhookFire) -> None:
        self._db.execute(ADD_FIRE, fire[:-1])

    def save_fire(self, fire: WebhookFire) -> None:
        self._db.execute(SAVE_FIRE, (*fire[1:], fire.id))

    def claim_fires(self, now: int, lane: int, limit: int, lease_until: int) -> list[WebhookFire]:
        sql = CLAIM_FIRES.format(unclaimed(self._db, DUE_FIRES))
        rows = self._db.execute(sql, (now, lane, limit, lease_until)).fetchall()
        return sorted((WebhookFire(*row) for row in rows), key=lambda claimed: (claimed.created_at, claimed.id))

    def trim_fires(self, subscription: str, keep: int) -> None:
        self._db.execute(TRIM_FIRES, (subscription, keep))

    def list_misplaced(self, now: int) -> tuple[list[WebhookSubscription], list[WebhookFire]]:
        far = (now + FAR_MS, now + FAR_FAILING_MS)
        ahead = [s for i in (0, 1) for s in self._subscriptions(f"WHERE {_DUE} = ? AND due_at>?", i, far[i])]
        fires = [f for lane in range(3) for f in self._fires(f"WHERE {_OPEN} AND lane=? AND due_at>?", lane, far[0])]
        return ahead, fires

    def list_failing(self, since: int, limit: int) -> list[WebhookSubscription]:
        return self._subscriptions(
            "WHERE failing_since IS NOT NULL AND state <> 'cancelled' AND failing_since<=? "
            "AND pause_reason IN ('endpoint_failing', 'endpoint_gone') "
            "ORDER BY failing_since LIMIT ?",
            since,
            limit,
        )

    def list_expired(self, now: int, limit: int) -> list[WebhookSubscription]:
        return self._subscriptions(
            "WHERE expires_at IS NOT NULL AND state <> 'cancelled' AND expires_at<=? ORDER BY expires_at LIMIT ?",
            now,
            limit,
        )

    def list_ended(self, before: int, limit: int) -> list[WebhookSubscription]:
        return self._subscriptions(
            f"""WHERE state = 'cancelled' AND paused_at<?
            AND NOT EXISTS (SELECT 1 FROM webhook_fire WHERE subscription = webhook_subscription.id AND {_OPEN})
            ORDER BY paused_at LIMIT ?""",
            before,
            limit,
        )

    def has_unpaid(self, fire: str) -> bool:
        return self._db.execute("SELECT 1 FROM webhook_unpaid WHERE fire=?", (fire,)).fetchone() is not None

    def count_unpaid(self, column: str, value: str, since: int, limit: int, *, refused: bool = False) -> int:
        """Count the unpaid bodies after a time, up to `limit`, by one of the columns of `UnpaidBody`."""
        assert column in UnpaidBody._fields
        row = self._db.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM webhook_unpaid WHERE {column}=? AND sent_at>? AND refused>=? LIMIT ?)"
            " AS counted",
            (value, since, int(refused), limit),
        ).fetchone()
        count: int = row[0]
        return count

    def add_unpaid(self, body: UnpaidBody) -> None:
        self._db.execute(ADD_UNPAID, body)

    def refuse_unpaid(self, fire: str) -> None:
        self._db.execute("UPDATE webhook_unpaid SET refused=1 WHERE fire=?", (fire,))

    def remove_unpaid(self, fire: str) -> str | None:
        """Stop counting a body, and return the payer with whom it was counted, or None if it was not."""
        row = self._db.execute("DELETE FROM webhook_unpaid WHERE fire=? RETURNING payer", (fire,)).fetchone()
        return None if row is None else str(row[0])

    def find_payer(self, payer: str) -> PayerCounts:
        """Return what an account had over its life."""
        row = self._db.execute("SELECT paid, refused, free FROM webhook_payer WHERE payer=?", (payer,)).fetchone()
        return PayerCounts() if row is None else PayerCounts._make(row)

    def count_payer(self, payer: str, more: PayerCounts) -> None:
        """Add to what an account had over its life. No count falls below 0: a body may be older than its count."""
        self._db.execute(COUNT_PAYER, (payer, *more))

    def forget_unpaid(self, before: int, now: int) -> None:
        self._db.execute("DELETE FROM webhook_unpaid WHERE sent_at<=?", (before,))
        self._db.execute("UPDATE webhook_unpaid SET sent_at=?1 WHERE sent_at>?1", (now,))

    def next_due(self) -> int | None:
        due_at: int | None = self._db.execute(self._spell(NEXT_DUE)).fetchone()[0]
        return due_at

    def save_payload(self, digest: str, body: bytes, now: int) -> None:
        """Store a compressed payload, or extend the time for which an existing one is kept."""
        self._db.execute(
            "INSERT INTO webhook_payload VALUES(?1, ?2, ?3) ON CONFLICT(digest) DO UPDATE SET created_at=?3",
            (digest, body, now),
        )

    def find_payload(self, digest: str) -> bytes | None:
        row = self._db.execute("SELECT body FROM webhook_payload WHERE digest=?", (digest,)).fetchone()
        return None if row is None else row[0]

    def forget_payloads(self, before: int) -> int:
        return self._db.execute(self._spell(FORGET_PAYLOADS), (before,)).rowcount


class WebhookOperation(Protocol, Generic[R_co]):
    """An operation that a store applies in one transaction, while no other instance applies one.

    Those of `LocksItsRows` are applied by several instances at once.
    """

    def on(self, tables: WebhookTables) -> R_co:
        """Apply the operation. If it raises a ToolserverError, nothing is changed."""
        ...


class LocksItsRows:
    """Marks an operation that claims rows or locks those that it changes."""

    __slots__ = ()


ROOM = "webhooks"  # changes of subscriptions: by one instance at a time, and while none claims or delivers
DELIVERING = ROOM + TOGETHER
LEVEL = 3
MOST_PAYLOAD = 4 * 1024 * 1024


class WebhookStore:
    """Subscriptions, fires and their payloads, in a file with group commit. Any method may raise StorageFailed."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def apply(self, operation: WebhookOperation[R]) -> R:
        """Apply an operation in one durable transaction. If the operation raises, nothing is changed."""
        room = DELIVERING if isinstance(operation, LocksItsRows) else ROOM
        outcome: R = await self._file.together(_apply_group, operation, room=room)
        return outcome

    async def subscription(self, id: str) -> WebhookSubscription | None:
        """Return a subscription, or None."""
        return await self._file.read(lambda db: WebhookTables(db).find(id))

    async def owned(self, owner: str) -> list[WebhookSubscription]:
        """Return the subscriptions that a token made or pays for, oldest first, including cancelled ones."""
        return await self._file.read(lambda db: WebhookTables(db).list_reached(owner))

    async def paid_by(self, payer: str) -> list[WebhookSubscription]:
        """Return the subscriptions that an account pays for, oldest first, including cancelled ones."""
        return await self._file.read(lambda db: WebhookTables(db).list_paid_by(payer))

    async def all(self, limit: int, state: str | None = None) -> list[WebhookSubscription]:
        """Return subscriptions of all owners, newest first, for the operator."""
        return await self._file.read(lambda db: WebhookTables(db).list_all(limit, state))

    async def fire(self, id: str) -> WebhookFire | None:
        """Return a fire, or None."""
        return await self._file.read(lambda db: WebhookTables(db).find_fire(id))

    async def fires(self, subscription: str, limit: int, before: str | None = None) -> list[WebhookFire]:
        """Return a subscription's last fires, newest first, that are older than the fire `before`."""
        return await self._file.read(lambda db: WebhookTables(db).list_fires(subscription, limit, before))

    async def next_due(self) -> int | None:
        """Return when the next subscription or fire is due."""
        return await self._file.read(lambda db: WebhookTables(db).next_due())

    async def save_payload(self, digest: str, body: bytes, now: int) -> None:
        """Store a payload under its digest, or extend the time for which an existing one is kept."""
        packed = pack_payload(body)
        await self._file.alone(lambda db: WebhookTables(db).save_payload(digest, packed, now), room=DELIVERING)

    async def payload(self, digest: str) -> bytes | None:
        """Return a payload if it is still kept, else None."""
        packed = await self._file.read(lambda db: WebhookTables(db).find_payload(digest))
        return None if packed is None else unpack_payload(packed)

    async def forget_payloads(self, before: int) -> int:
        """Remove payloads unused since a time and not carried by an open fire. Returns their number."""
        return await self._file.alone(lambda db: WebhookTables(db).forget_payloads(before), room=ROOM)


def pack_payload(body: bytes) -> bytes:
    """Compress a payload as it is stored."""
    import zstandard  # loaded with the first payload

    return zstandard.ZstdCompressor(level=LEVEL).compress(body)


def unpack_payload(packed: bytes) -> bytes:
    """Return a payload that was stored compressed."""
    import zstandard

    return zstandard.ZstdDecompressor().decompress(packed, MOST_PAYLOAD)


def _apply_group(db: SqlConnection, group: Sequence[WebhookOperation[Any]]) -> list[Any]:
    """Return the outcomes of a group, including refusals. Any other failure fails the group; each is then retried."""
    tables = WebhookTables(db)
    return [_outcome(operation, tables) for operation in group]


def _outcome(operation: WebhookOperation[Any], tables: WebhookTables) -> Any:
    try:
        return operation.on(tables)
    except ToolserverError as refusal:
        return refusal
