"""Open a service's webhooks from its settings. A server also delivers them; other commands only read and write."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from toolserver.calls.pipeline import Pipeline
from toolserver.context.service_info import ServiceInfo
from toolserver.core.caller import token_hash
from toolserver.errors import InvalidToken
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.store import SqlLedger
from toolserver.registry.registry import Registry
from toolserver.serving.assembly import open_tasks
from toolserver.serving.money import MoneyParts
from toolserver.serving.packaged_texts import read_examples
from toolserver.settings import Settings
from toolserver.webhooks.charges import FOLLOWED_HOLD_S, HOLD_S, FireLedger
from toolserver.webhooks.memory_store import MemoryWebhookStore
from toolserver.webhooks.records import TokenAccount
from toolserver.webhooks.secret_box import open_key, temporary_key
from toolserver.webhooks.service import WebhookService, WebhookSetup, open_webhooks
from toolserver.webhooks.sql_store import SqlWebhookStore
from toolserver.webhooks.store import WebhookStore


@asynccontextmanager
async def open_service_webhooks(
    settings: Settings,
    registry: Registry,
    pipeline: Pipeline,
    money: MoneyParts,
    info: ServiceInfo,
    *,
    deliver: bool = False,
) -> AsyncIterator[WebhookService | None]:
    """Open the webhooks of a service, which its tools find in `info`; None if they are switched off.

    With `deliver`, due webhooks are delivered until the block is left.

    Raises:
        SecretsUnreadable
    """
    if not settings.webhooks.enabled:
        yield None
        return
    store = _store_of(money)
    stored = not isinstance(store, MemoryWebhookStore)
    setup = WebhookSetup(
        store=store,
        registry=registry,
        pipeline=pipeline,
        receipts=money.evidence,
        clock=info.clock,
        key=open_key(settings.data_dir, settings.scaling.keys_dir) if stored else temporary_key(),
        account_of=account_lookup(money),
        ledger=_fire_ledger(money),
        observe=pipeline.metrics.attempted,
        examples=read_examples,
        allow_loopback=settings.webhooks.allow_loopback,
        uncharged_per_hour=settings.limits.uncharged_per_hour if settings.limits.enabled else None,
        hold_s=HOLD_S if money.followed is None else FOLLOWED_HOLD_S,
    )
    async with open_webhooks(setup) as webhooks, open_tasks() as tasks:
        info.webhooks = webhooks.subscriptions
        if deliver:
            tasks.start_soon(webhooks.queue.run)
        yield webhooks


def _fire_ledger(money: MoneyParts) -> FireLedger | None:
    """Return a followed ledger in the form that fires need; None for the ledger of all other calls."""
    if money.followed is None:
        return None
    from toolserver.money.ledger.client.kept_calls import KeptCalls

    return KeptCalls(money.followed)


def _store_of(money: MoneyParts) -> WebhookStore:
    """Return the store of subscriptions, in the file of the ledger or of its journal."""
    if money.followed is not None:
        return SqlWebhookStore(money.followed.file)
    return SqlWebhookStore(money.ledger.file) if isinstance(money.ledger, SqlLedger) else MemoryWebhookStore()


def account_lookup(money: MoneyParts) -> Callable[[str], Awaitable[TokenAccount]]:
    """Return a function that finds a token's account and its payer, so that no token has to be stored."""
    ledger, followed = money.ledger, money.followed

    async def find(token: str) -> TokenAccount:
        if followed is not None:
            account = await followed.account(token)
            return TokenAccount(account.ref.ref, account.payer or token_hash(token).hex())
        if isinstance(ledger, SqlLedger | MemoryLedger):
            standing = await ledger.standing(token)
            return TokenAccount(standing.ref.ref, standing.payer)
        raise InvalidToken("This ledger does not name accounts.")

    return find
