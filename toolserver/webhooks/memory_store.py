"""Store webhooks in memory: for tests, and as the model with which every other store is compared."""

from typing import TypeVar

from toolserver.webhooks.records import SLOW, UnpaidBody, WebhookFire, WebhookSubscription
from toolserver.webhooks.schedule import is_misplaced, next_slot
from toolserver.webhooks.store import WebhookOperation

R = TypeVar("R")


class MemoryTables:
    """The rows, as operations see them."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, WebhookSubscription] = {}
        self.fires: dict[str, WebhookFire] = {}
        self.unpaid: dict[str, UnpaidBody] = {}

    def find(self, id: str) -> WebhookSubscription | None:
        return self.subscriptions.get(id)

    def list_paid_by(self, payer: str) -> list[WebhookSubscription]:
        return [s for s in self.list_reached(payer) if s.payer == payer]

    def list_reached(self, owner: str) -> list[WebhookSubscription]:
        reached = (s for s in self.subscriptions.values() if owner in (s.owner, s.payer))
        return sorted(reached, key=lambda s: (s.created_at, s.id))

    def add(self, subscription: WebhookSubscription) -> None:
        assert subscription.id not in self.subscriptions
        self.subscriptions[subscription.id] = subscription

    def save(self, subscription: WebhookSubscription) -> None:
        assert subscription.id in self.subscriptions
        self.subscriptions[subscription.id] = subscription

    def remove(self, id: str) -> None:
        del self.subscriptions[id]
        self.fires = {key: fire for key, fire in self.fires.items() if fire.subscription != id}

    def claim_due(self, now: int, limit: int, *, failing: bool) -> list[WebhookSubscription]:
        active = (s for s in self.subscriptions.values() if s.state == "active" and (s.lane == SLOW) is failing)
        due = sorted((s for s in active if s.due_at <= now), key=lambda s: s.due_at)
        claimed = [s._replace(due_at=next_slot(s.created_at, now)) for s in due[:limit]]
        self.subscriptions |= {s.id: s for s in claimed}
        return claimed

    def find_fire(self, id: str) -> WebhookFire | None:
        return self.fires.get(id)

    def add_fire(self, fire: WebhookFire) -> None:
        assert fire.id not in self.fires
        self.fires[fire.id] = fire._replace(seq=1 + max((f.seq for f in self.list_log(fire.subscription)), default=0))

    def save_fire(self, fire: WebhookFire) -> None:
        assert self.fires[fire.id].is_open
        self.fires[fire.id] = fire

    def claim_fires(self, now: int, lane: int, limit: int, lease_until: int) -> list[WebhookFire]:
        due = sorted(
            (f for f in self.fires.values() if f.is_open and f.lane == lane and f.due_at <= now),
            key=lambda f: (f.due_at, f.id),
        )
        claimed = [f._replace(due_at=lease_until, claims=f.claims + 1) for f in due[:limit]]
        self.fires |= {f.id: f for f in claimed}
        return claimed

    def trim_fires(self, subscription: str, keep: int) -> None:
        for fire in self.list_log(subscription)[keep:]:
            if not fire.is_open:
                del self.fires[fire.id]

    def list_log(self, subscription: str) -> list[WebhookFire]:
        mine = (f for f in self.fires.values() if f.subscription == subscription)
        return sorted(mine, key=lambda f: f.seq, reverse=True)

    def list_misplaced(self, now: int) -> tuple[list[WebhookSubscription], list[WebhookFire]]:
        subscriptions = [
            s
            for s in self.subscriptions.values()
            if s.state == "active" and is_misplaced(s.due_at, now, failing=s.lane == SLOW)
        ]
        return subscriptions, [f for f in self.fires.values() if f.is_open and is_misplaced(f.due_at, now)]

    def list_failing(self, since: int, limit: int) -> list[WebhookSubscription]:
        failing = [
            s
            for s in self.subscriptions.values()
            if s.failing_since is not None and s.failing_since <= since
            if s.pause_reason in ("endpoint_failing", "endpoint_gone")
        ]
        return sorted(failing, key=lambda s: s.failing_since or 0)[:limit]

    def list_ended(self, before: int, limit: int) -> list[WebhookSubscription]:
        ended = (s for s in self.subscriptions.values() if s.state == "cancelled" and (s.paused_at or 0) < before)
        over = [s for s in ended if not any(f.is_open for f in self.list_log(s.id))]
        return sorted(over, key=lambda s: s.paused_at or 0)[:limit]

    def has_unpaid(self, fire: str) -> bool:
        return fire in self.unpaid

    def count_unpaid(self, column: str, value: str, since: int, limit: int, *, refused: bool = False) -> int:
        counted = [u for u in self.unpaid.values() if getattr(u, column) == value and u.sent_at > since]
        return min(sum(u.refused >= int(refused) for u in counted), limit)

    def add_unpaid(self, body: UnpaidBody) -> None:
        assert body.fire not in self.unpaid
        self.unpaid[body.fire] = body

    def refuse_unpaid(self, fire: str) -> None:
        if fire in self.unpaid:
            self.unpaid[fire] = self.unpaid[fire]._replace(refused=1)

    def remove_unpaid(self, fire: str) -> None:
        self.unpaid.pop(fire, None)

    def forget_unpaid(self, before: int, now: int) -> None:
        counted = [u for u in self.unpaid.values() if u.sent_at > before]
        self.unpaid = {u.fire: u._replace(sent_at=min(u.sent_at, now)) for u in counted}


class MemoryWebhookStore:
    """A `WebhookStore` in memory."""

    def __init__(self) -> None:
        self.tables = MemoryTables()
        self._payloads: dict[str, tuple[bytes, int]] = {}

    async def apply(self, operation: WebhookOperation[R]) -> R:
        return operation.on(self.tables)

    async def subscription(self, id: str) -> WebhookSubscription | None:
        return self.tables.find(id)

    async def owned(self, owner: str) -> list[WebhookSubscription]:
        return self.tables.list_reached(owner)

    async def all(self, limit: int, state: str | None = None) -> list[WebhookSubscription]:
        found = [s for s in self.tables.subscriptions.values() if state is None or s.state == state]
        return sorted(found, key=lambda s: (-s.created_at, s.id))[:limit]

    async def fire(self, id: str) -> WebhookFire | None:
        return self.tables.find_fire(id)

    async def fires(self, subscription: str, limit: int, before: str | None = None) -> list[WebhookFire]:
        cursor = None if before is None else self.tables.find_fire(before)
        if before is not None and cursor is None:
            return []
        log = self.tables.list_log(subscription)
        return [f for f in log if cursor is None or f.seq < cursor.seq][:limit]

    async def next_due(self) -> int | None:
        due = [s.due_at for s in self.tables.subscriptions.values() if s.state == "active"]
        return min([*due, *(f.due_at for f in self.tables.fires.values() if f.is_open)], default=None)

    async def save_payload(self, digest: str, body: bytes, now: int) -> None:
        self._payloads[digest] = (body, now)

    async def payload(self, digest: str) -> bytes | None:
        found = self._payloads.get(digest)
        return None if found is None else found[0]

    async def forget_payloads(self, before: int) -> int:
        open_ones = {fire.payload for fire in self.tables.fires.values() if fire.is_open}
        old = [digest for digest, (_, at) in self._payloads.items() if at < before and digest not in open_ones]
        for digest in old:
            del self._payloads[digest]
        return len(old)
