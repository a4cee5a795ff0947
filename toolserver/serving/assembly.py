"""Open the larger parts of a service from the settings. `toolserver.app` puts them together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolserver import __version__
from toolserver.calls.allowances import ALLOWANCE_PATH, Allowances
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.rate_limit import FreeLimits, PersonalLimits, UnchargedLimit
from toolserver.calls.response_cache import ResponseCache
from toolserver.calls.shared_limits import SharedFreeLimits, SharedPersonalLimits, SharedUnchargedLimit
from toolserver.calls.stored_responses import SharedResponses, StoredResponses
from toolserver.clock import Clock
from toolserver.context.service_info import ServiceInfo
from toolserver.context.time_series import TimeSeriesStore
from toolserver.core.caller import Addresses
from toolserver.core.metrics import Metrics
from toolserver.core.shared_memory import SharedMemory
from toolserver.core.usage_stats import KEEP_H, Usage
from toolserver.money.x402.service import exact_of, topups_of
from toolserver.money.x402.wire import TOPUP_PATH
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.registry.source_list import digest_source_list
from toolserver.serving.money import MoneyParts
from toolserver.serving.readiness import Readiness
from toolserver.serving.untrusted_proxy import UntrustedProxyNote
from toolserver.settings import LimitSettings, Settings
from toolserver.sql.persistent_cache import MIGRATIONS, PersistentCache, StoredAnswer, open_database
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import HttpSender, RecordExchange
from toolserver.upstream.reading import SourceReader
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.shared_fetch import FetchInMemory
from toolserver.upstream.size_guard import SERIES, SizeGuard
from toolserver.upstream.source_history import SourceHistory


@asynccontextmanager
async def open_store(settings: Settings, clock: Clock) -> AsyncIterator[PersistentCache]:
    """Open the answers on disk. Pending writes are completed when the block is left."""
    async with open_database(settings.data_dir / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=clock.now)
        async with anyio.create_task_group() as writer:
            await writer.start(store.run)
            yield store
            writer.cancel_scope.cancel()


async def restore_history(
    store: PersistentCache | None, usage: Usage, clock: Clock
) -> tuple[TimeSeriesStore, SourceHistory, SizeGuard]:
    """Restore the usage counts, and return the stored time series, source history and list sizes."""
    if store is None:
        return TimeSeriesStore(), SourceHistory(clock), SizeGuard()
    history, sources = TimeSeriesStore(store.save_point), SourceHistory(clock, store)
    sizes = SizeGuard(store.save_point)
    sources.restore(await store.load_quarters(), await store.load_changes())
    points = await store.load_history()
    history.restore(point for point in points if point[0] != SERIES)
    sizes.restore(points)
    usage.restore(await store.load_usage(int(clock.time() // 3600) - KEEP_H))
    return history, sources, sizes


@asynccontextmanager
async def open_fetcher(
    settings: Settings,
    facts: SiteFacts,
    clock: Clock,
    metrics: Metrics,
    transport: Any = None,
    record: RecordExchange | None = None,
    history: SourceHistory | None = None,
    memory: SharedMemory | None = None,
) -> AsyncIterator[Fetcher]:
    """Open the fetcher, which sends requests to upstreams. With `memory`, budgets and circuits hold over all instances.

    Leaving the block closes its connections within 2 s.
    """
    contact = f"; {facts.contact}" if facts.contact else ""
    sender = HttpSender(
        clock=clock,
        keys=settings.keys,
        user_agent=f"toolserver/{__version__} (+{facts.base_url}{contact})",
        via=settings.upstream.via,
        transport=transport,
        record=record,
    )
    fetcher = Fetcher(
        sender,
        clock=clock,
        keys=settings.keys,
        licence_policy=settings.sources.licence_policy,
        observe=metrics.fetched,
        history=history,
        memory=memory,
    )
    metrics.follow_budgets(fetcher.list_budgets)
    metrics.follow_announcements(fetcher.announcements.list_all)
    metrics.follow_closed(fetcher.refusals.list_closed, fetcher.health.list_open)
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
    """Put the allowances into `info` for tools, and return the registry.

    The registry lacks the tools of allowances if the service that keeps the ledger has none.
    """
    info.allowances = Allowances(money.allowances, registry, clock)
    if money.followed is None or await money.followed.keeps_allowances():
        return registry
    return registry.unlist(operation.name for operation in registry if operation.path.startswith(ALLOWANCE_PATH))


def unlist_topups(registry: Registry, info: ServiceInfo, settings: Settings) -> Registry:
    """Return the registry, without the x402 top-up if neither this service nor its ledger's owner accepts one."""
    if info.x402 is not None or settings.ledger.public_url is not None:
        return registry
    return registry.unlist(operation.name for operation in registry if operation.path == TOPUP_PATH)


def make_addresses(settings: Settings, *, noted: bool) -> Addresses:
    """Return what tells callers apart by address. `noted`: an untrusted proxy is recorded for `doctor`."""
    note = UntrustedProxyNote(settings.data_dir).note if noted else None
    return Addresses(settings.limits.trusted_proxies, note)


def make_readiness(
    settings: Settings,
    money: MoneyParts,
    clock: Clock,
    is_stopping: Callable[[], bool],
    memory: SharedMemory | None,
) -> Readiness:
    """Return the check whether this instance takes calls."""
    return Readiness(
        money.file,
        settings.data_dir,
        least_free=settings.storage.least_free_bytes,
        monotonic=clock.monotonic,
        is_stopping=is_stopping,
        memory=memory,
        sells=lambda: money.followed is None or money.followed.health.is_up,
    )


@asynccontextmanager
async def open_shared_memory(settings: Settings, metrics: Metrics) -> AsyncIterator[SharedMemory | None]:
    """Open the memory that instances share; None if there is only one instance. Raises RedisMissing."""
    if settings.redis_url is None:
        yield None
        return
    from toolserver.shared.redis import open_redis

    scaling = settings.scaling
    world = "simulated:" if settings.upstream.via else ""
    async with open_redis(
        settings.redis_url.get_secret_value(),
        prefix=scaling.redis_prefix + world,
        deadline_s=scaling.redis_deadline_s,
        instances=scaling.instances,
    ) as memory:
        metrics.follow_shared_memory(lambda: (not memory.is_lost, memory.lost, memory.refused))
        yield memory


def build_source_cache(
    settings: Settings,
    fetcher: Fetcher,
    clock: Clock,
    tasks: TaskGroup,
    store: PersistentCache | None,
    sizes: SizeGuard,
    memory: SharedMemory | None,
) -> SourceCache:
    """Build the cache of source answers. With `memory`, one instance requests an upstream for all of them."""
    shared = None if memory is None else FetchInMemory(memory, SecretRemover(settings.keys))
    return SourceCache(fetcher, clock=clock, tasks=tasks, store=store, sizes=sizes, shared=shared)


def build_answers(
    settings: Settings,
    registry: Registry,
    facts: SiteFacts,
    reader: SourceReader,
    clock: Clock,
    tasks: TaskGroup,
    info: ServiceInfo,
    history: TimeSeriesStore,
    store: PersistentCache | None,
    memory: SharedMemory | None = None,
) -> ResponseCache:
    """Build the cache of rendered answers. With `memory`, all instances return the same bytes until they expire."""
    stored = StoredResponses(
        f"{facts.source}|{'simulated' if facts.simulated else 'live'}",
        disk=store,
        pack=StoredAnswer,
        shared=None if memory is None else SharedResponses(memory),
    )
    return ResponseCache(
        reader,
        clock=clock,
        tasks=tasks,
        source=facts.source,
        simulated=facts.simulated,
        sources_digest=digest_source_list(registry),
        hedge_after_s=settings.upstream.hedge_after_s,
        host=info,
        history=history,
        stored=stored,
    )


def build_pipeline(
    settings: LimitSettings,
    answers: ResponseCache,
    money: MoneyParts,
    metrics: Metrics,
    usage: Usage,
    memory: SharedMemory | None = None,
) -> Pipeline:
    """Build the pipeline with the rate limits from the settings. With `memory`, they hold over all instances."""
    shared: dict[str, Any] = {
        "monotonic": answers.clock.monotonic,
        "enabled": settings.enabled,
        "keys": settings.clients,
    }
    free, personal, bound = _choose_limits(memory)
    uncharged = bound(per_hour=settings.uncharged_per_hour, **shared)
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
            uncharged=uncharged,
        ),
        limits=free(
            daily=settings.daily,
            spacing_s=settings.spacing_s,
            scope=settings.spacing_scope,
            **shared,
        ),
        personal=personal(per_minute=settings.personal_per_minute, **shared),
        premium=personal(per_minute=settings.premium_per_minute, name="premium", **shared),
        uncharged=uncharged,
    )


def _choose_limits(memory: SharedMemory | None) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return the factories of the limits for the free tier, for kinds of tools, and for uncharged calls."""
    if memory is None:
        return FreeLimits, PersonalLimits, UnchargedLimit
    return (
        partial(SharedFreeLimits, memory),
        partial(SharedPersonalLimits, memory),
        partial(SharedUnchargedLimit, memory),
    )
