"""Open the webhooks of one service together: the guard, the sender, the queue, and what owners can do."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from yarl import URL

from toolserver.calls.pipeline import Pipeline
from toolserver.clock import Clock
from toolserver.money.receipts.sign import Receipts
from toolserver.registry.registry import Registry
from toolserver.webhooks.charges import HOLD_S, FireLedger, WebhookCharges
from toolserver.webhooks.dns_lane import DnsLane, Lookup, look_up
from toolserver.webhooks.egress import EgressGuard
from toolserver.webhooks.fire_worker import FireParts, FireWorker
from toolserver.webhooks.host_limits import HostLimits
from toolserver.webhooks.payloads import PayloadSource
from toolserver.webhooks.queue import LEASE_MS, WebhookQueue
from toolserver.webhooks.records import Attempt, TokenAccount
from toolserver.webhooks.secret_box import SecretBoxKey
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscriptions import SubscriptionParts, WebhookSubscriptions
from toolserver.webhooks.timer import WebhookTimer

if TYPE_CHECKING:
    from toolserver.webhooks.delivery import WebhookSender


def _observe_nothing(outcome: str) -> None:
    """Ignore the outcome of an attempt."""


@dataclass(frozen=True, slots=True)
class WebhookSetup:
    """The parts of webhooks.

    `ledger` charges fires, by default the pipeline's. `uncharged_per_hour` limits the unpaid bodies of an account; with
    None they are not limited. `observe` counts attempts by outcome. `lookup` and `tls` are for tests. `hold_s` is
    shorter with a followed ledger.
    """

    store: WebhookStore
    registry: Registry
    pipeline: Pipeline
    receipts: Receipts | None
    clock: Clock
    key: SecretBoxKey
    account_of: Callable[[str], Awaitable[TokenAccount]]
    ledger: FireLedger | None = None
    observe: Callable[[str], None] = _observe_nothing
    examples: Callable[[], Mapping[str, Any]] = dict
    allow_loopback: bool = False
    uncharged_per_hour: int | None = 10
    hold_s: float = HOLD_S
    lease_ms: int = LEASE_MS
    lookup: Lookup = look_up
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class WebhookService:
    """Running webhooks: what owners can do, and the queue, which the caller has to run."""

    subscriptions: WebhookSubscriptions
    queue: WebhookQueue
    store: WebhookStore
    limits: HostLimits


class _LazySender:
    """A sender that is created with the first delivery, outside the event loop.

    Importing aiohttp and loading the certificate authorities takes 0.3 s.
    """

    def __init__(
        self, guard: EgressGuard, lane: DnsLane, tls: ssl.SSLContext | None, observe: Callable[[str], None]
    ) -> None:
        self._guard, self._lane, self._tls, self._observe = guard, lane, tls, observe
        self._sender: WebhookSender | None = None
        self._making = anyio.Lock()

    async def send(self, url: URL, body: bytes, headers: Mapping[str, str]) -> Attempt:
        if self._sender is None:
            async with self._making:
                self._sender = self._sender or await self._make()
        attempt = await self._sender.send(url, body, headers)
        self._observe(attempt.error or "ok")
        return attempt

    async def _make(self) -> "WebhookSender":
        tls = await anyio.to_thread.run_sync(_load_sending, self._tls)
        from toolserver.webhooks.delivery import WebhookSender

        return WebhookSender(self._guard, self._lane, tls=tls)

    async def close(self) -> None:
        if self._sender is not None:
            await self._sender.close()


def _load_sending(tls: ssl.SSLContext | None) -> ssl.SSLContext:
    """Import the sender, and load this machine's certificate authorities unless others are given."""
    import toolserver.webhooks.delivery  # noqa: F401 - imported here, in a thread, for the first time

    return tls or ssl.create_default_context()


@asynccontextmanager
async def open_webhooks(setup: WebhookSetup) -> AsyncIterator[WebhookService]:
    """Run the webhooks of a service until the block is left, then end connections and lookups."""
    guard = EgressGuard(allow_loopback=setup.allow_loopback)
    lane = DnsLane(guard, setup.clock, lookup=setup.lookup)
    sender = _LazySender(guard, lane, setup.tls, setup.observe)
    try:
        charges = WebhookCharges(setup.ledger or setup.pipeline.ledger, setup.receipts, hold_s=setup.hold_s)
        payloads = PayloadSource(setup.registry, setup.pipeline)
        limits = HostLimits(setup.clock)
        parts = FireParts(
            store=setup.store,
            charges=charges,
            payloads=payloads,
            sender=sender,
            guard=guard,
            key=setup.key,
            limits=limits,
            clock=setup.clock,
            uncharged_per_hour=setup.uncharged_per_hour,
        )
        timer = WebhookTimer(setup.store, payloads, charges, setup.clock)
        queue = WebhookQueue(timer, FireWorker(parts), setup.store, setup.clock, lease_ms=setup.lease_ms)
        subscription_parts = SubscriptionParts(
            parts, lane, setup.pipeline.ledger, setup.account_of, queue.wake, setup.examples
        )
        yield WebhookService(WebhookSubscriptions(subscription_parts), queue, setup.store, limits)
    finally:
        await sender.close()
        lane.close()
