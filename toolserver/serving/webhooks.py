"""Open a service's webhooks from its settings. A server also delivers them; other commands only read and write."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from toolserver.calls.pipeline import Pipeline
from toolserver.context.service_info import ServiceInfo
from toolserver.core.caller import token_hash
from toolserver.money.ledger.client.ledger import KeptCalls
from toolserver.registry.registry import Registry
from toolserver.serving.background_tasks import open_tasks
from toolserver.serving.money import MoneyParts
from toolserver.serving.packaged_texts import read_examples
from toolserver.settings import Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.sqlite import in_memory
from toolserver.webhooks.delivery import (
    FOLLOWED_HOLD_S,
    HOLD_S,
    DeliveryNetwork,
    PayloadSource,
    WebhookCharges,
    open_sender,
)
from toolserver.webhooks.event_subscriptions import EventSubscriptions
from toolserver.webhooks.queue import FireParts, FireWorker, WebhookQueue, WebhookTimer
from toolserver.webhooks.records import TokenAccount
from toolserver.webhooks.signing import open_key, temporary_key
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscriptions import SubscriptionParts, WebhookSubscriptions

NETWORK = DeliveryNetwork()


@dataclass(frozen=True, slots=True)
class WebhookService:
    """Open webhooks: what owners can do, the queue, and what is stored."""

    subscriptions: WebhookSubscriptions
    events: EventSubscriptions
    queue: WebhookQueue
    store: WebhookStore


@asynccontextmanager
async def open_webhooks(
    settings: Settings,
    registry: Registry,
    pipeline: Pipeline,
    money: MoneyParts,
    info: ServiceInfo,
    *,
    deliver: bool = False,
    network: DeliveryNetwork = NETWORK,
    examples: Callable[[], Mapping[str, Any]] = read_examples,
) -> AsyncIterator[WebhookService | None]:
    """Open the webhooks of a service, which its tools find in `info`; None if they are switched off.

    With `deliver`, due webhooks are delivered until the block is left. `network` and
    `examples` are for tests.

    Raises:
        SecretsUnreadable
    """
    if not settings.webhooks.enabled:
        yield None
        return
    clock = info.clock
    async with (
        _open_file(money) as file,
        open_sender(
            clock,
            network,
            allow_loopback=settings.webhooks.allow_loopback,
            observe=pipeline.metrics.attempted,
            proxy=settings.webhooks.proxy_address,
        ) as sender,
        open_tasks() as tasks,
    ):
        pipeline.metrics.follow_waits(sender.lane.room.count)
        store = WebhookStore(file)
        charges = WebhookCharges(
            money.ledger if money.followed is None else KeptCalls(money.followed),
            money.evidence,
            hold_s=HOLD_S if money.followed is None else FOLLOWED_HOLD_S,
        )
        payloads = PayloadSource(registry, pipeline)
        fires = FireParts(
            store=store,
            charges=charges,
            payloads=payloads,
            sender=sender,
            key=temporary_key() if money.file is None else open_key(settings.data_dir, settings.scaling.keys_dir),
            clock=clock,
            uncharged_per_hour=settings.limits.uncharged_per_hour if settings.limits.enabled else None,
        )
        queue = WebhookQueue(WebhookTimer(store, payloads, charges, clock), FireWorker(fires), store, clock)
        parts = SubscriptionParts(
            fires=fires,
            ledger=money.ledger,
            account_of=account_lookup(money),
            wake=queue.wake,
            examples=examples,
            keeps_ledger=money.followed is None,
        )
        subscriptions = WebhookSubscriptions(parts)
        info.webhooks = subscriptions
        if deliver:
            tasks.start_soon(queue.run)
        yield WebhookService(subscriptions, EventSubscriptions(parts), queue, store)


@asynccontextmanager
async def _open_file(money: MoneyParts) -> AsyncIterator[GroupCommit]:
    """Open what stores the webhooks: the file of the credits, or a database in memory where there is none."""
    if money.file is not None:
        yield money.file
        return
    async with in_memory() as file:
        yield file


def account_lookup(money: MoneyParts) -> Callable[[str], Awaitable[TokenAccount]]:
    """Return a function that finds a token's account and its payer, so that no token has to be stored."""
    own, followed = money.own, money.followed

    async def find_followed(token: str) -> TokenAccount:
        assert followed is not None
        account = await followed.account(token)
        return TokenAccount(account.ref.ref, account.payer or token_hash(token).hex())

    async def find_own(token: str) -> TokenAccount:
        assert own is not None
        standing = await own.standing(token)
        return TokenAccount(standing.ref.ref, standing.payer, standing.paths)

    return find_own if followed is None else find_followed
