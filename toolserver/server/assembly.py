"""The larger parts of a service, each opened from the settings. `toolserver.app` puts them together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolserver import __version__
from toolserver.calls.allowances import ALLOWANCE_PATH, Allowances
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.rate_limit import FreeLimits, PersonalLimits
from toolserver.calls.response_cache import ResponseCache
from toolserver.calls.uncharged_limit import UnchargedLimit
from toolserver.clock import Clock
from toolserver.context.service_info import ServiceInfo
from toolserver.context.time_series import TimeSeriesStore
from toolserver.core.caller import Addresses
from toolserver.core.metrics import Metrics
from toolserver.core.usage_stats import KEEP_H, Usage
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.server.money import MoneyParts
from toolserver.server.readiness import Readiness
from toolserver.server.untrusted_proxy import UntrustedProxyNote
from toolserver.settings import LimitSettings, Settings
from toolserver.storage.persistent_cache import MIGRATIONS, PersistentCache
from toolserver.storage.sqlite import open_database
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import RecordExchange
from toolserver.x402.headers import TOPUP_PATH
from toolserver.x402.service import exact_of, topups_of


@asynccontextmanager
async def open_store(settings: Settings, clock: Clock) -> AsyncIterator[PersistentCache]:
    """Open the answers on disk. What waits to be written is written when the block is left."""
    async with open_database(settings.data_dir / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=clock.now)
        async with anyio.create_task_group() as writer:
            await writer.start(store.run)
            yield store
            writer.cancel_scope.cancel()


async def restore_history(store: PersistentCache, usage: Usage, clock: Clock) -> TimeSeriesStore:
    """Restore the usage counts, and return the time series that were kept."""
    history = TimeSeriesStore(store.save_point)
    history.restore(await store.load_history())
    usage.restore(await store.load_usage(int(clock.time() // 3600) - KEEP_H))
    return history


@asynccontextmanager
async def open_fetcher(
    settings: Settings,
    facts: SiteFacts,
    clock: Clock,
    metrics: Metrics,
    transport: Any = None,
    record: RecordExchange | None = None,
) -> AsyncIterator[Fetcher]:
    """Open the fetcher, which asks the upstreams. Leaving the block closes its connections within 2 s."""
    contact = f"; {facts.contact}" if facts.contact else ""
    fetcher = Fetcher(
        clock=clock,
        keys=settings.keys,
        user_agent=f"toolserver/{__version__} (+{facts.base_url}{contact})",
        licence_policy=settings.sources.licence_policy,
        via=settings.upstream.via,
        observe=metrics.fetched,
        transport=transport,
        record=record,
    )
    metrics.follow_budgets(fetcher.list_budgets)
    metrics.follow_announcements(fetcher.announcements.list_all)
    try:
        yield fetcher
    finally:
        with anyio.move_on_after(2, shield=True):
            await fetcher.aclose()


@asynccontextmanager
async def open_tasks() -> AsyncIterator[TaskGroup]:
    """Open a task group whose tasks are cancelled when the block is left."""
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()


def describe_service(settings: Settings, clock: Clock, usage: Usage, money: MoneyParts) -> ServiceInfo:
    """Collect what tools may know about this service."""
    return ServiceInfo(
        clock,
        settings.data_dir,
        probe_targets=settings.probes.targets,
        usage=usage,
        evidence=money.evidence,
        payments=money.payments,
        statements=money.statements,
        blocks=settings.onchain.blocks,
        x402=topups_of(money.x402, money.ledger),
    )


async def open_allowances(registry: Registry, money: MoneyParts, clock: Clock, info: ServiceInfo) -> Registry:
    """Let tools find the allowances in `info`. The registry: without the tools of allowances where the service that
    keeps the ledger has none.
    """
    info.allowances = Allowances(money.allowances, registry, clock)
    if money.followed is None or await money.followed.keeps_allowances():
        return registry
    return registry.unlist(operation.name for operation in registry if operation.path.startswith(ALLOWANCE_PATH))


def unlist_topups(registry: Registry, info: ServiceInfo, settings: Settings) -> Registry:
    """The registry: without the top-up by x402 where neither this service nor the owner of its ledger takes one."""
    if info.x402 is not None or settings.ledger.public_url is not None:
        return registry
    return registry.unlist(operation.name for operation in registry if operation.path == TOPUP_PATH)


def make_addresses(settings: Settings, *, noted: bool) -> Addresses:
    """What tells callers apart by address. `noted`: a proxy that is not trusted is written down for `doctor`."""
    note = UntrustedProxyNote(settings.data_dir).note if noted else None
    return Addresses(settings.limits.trusted_proxies, note)


def make_readiness(settings: Settings, money: MoneyParts, clock: Clock, is_stopping: Callable[[], bool]) -> Readiness:
    """What says whether this instance takes calls."""
    return Readiness(
        money.file,
        settings.data_dir,
        least_free=settings.storage.least_free_bytes,
        monotonic=clock.monotonic,
        is_stopping=is_stopping,
    )


def build_pipeline(
    settings: LimitSettings, answers: ResponseCache, money: MoneyParts, metrics: Metrics, usage: Usage
) -> Pipeline:
    """Build the pipeline, with its rate limits as they are set."""
    shared: dict[str, Any] = {
        "monotonic": answers.clock.monotonic,
        "enabled": settings.enabled,
        "keys": settings.clients,
    }
    return Pipeline(
        answers,
        ledger=money.ledger,
        idempotency=money.idempotency,
        metrics=metrics,
        usage=usage,
        receipts=money.evidence,
        receipted_charges=money.receipted_charges,
        x402=exact_of(
            money.x402,
            answers=answers,
            idempotency=money.idempotency,
            metrics=metrics,
            receipts=money.evidence,
        ),
        limits=FreeLimits(
            daily=settings.daily,
            spacing_s=settings.spacing_s,
            scope=settings.spacing_scope,
            **shared,
        ),
        personal=PersonalLimits(per_minute=settings.personal_per_minute, **shared),
        premium=PersonalLimits(per_minute=settings.premium_per_minute, name="premium", **shared),
        uncharged=UnchargedLimit(per_hour=settings.uncharged_per_hour, **shared),
    )
