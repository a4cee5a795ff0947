"""The composition root: from settings to a running service, and from that to an ASGI callable.

Only this module and the command line know everyone.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup

from rest_bridge import receipts, x402
from rest_bridge.face import Face
from toolserver import __version__, ids, problems
from toolserver.access import Addresses
from toolserver.answers import Answers
from toolserver.clock import Clock, SystemClock
from toolserver.documents import Facts
from toolserver.documents import Limits as LimitFacts
from toolserver.errors import CallRejected
from toolserver.following import FollowedClock, follow
from toolserver.history import History
from toolserver.host import Host
from toolserver.limits import FreeLimits, PersonalLimits
from toolserver.metrics import Metrics
from toolserver.payments.x402.desk import exact_of, topups_of
from toolserver.pipeline import Pipeline
from toolserver.protocol.endpoint import McpEndpoint
from toolserver.registry import Registry
from toolserver.rendering import json_bytes
from toolserver.settings import Limits, Settings
from toolserver.site import pages_of, sales_of
from toolserver.storage.answers import MIGRATIONS, AnswerFile, StoredAnswer
from toolserver.storage.db import opened
from toolserver.treasury import Treasury, opened_treasury
from toolserver.upkeep import follow_asked, keep_usage, keep_warm
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.reader import Reader
from toolserver.usage import KEEP_H, Usage

log = logging.getLogger(__name__)

TOPUP = "/api/payment/topup"


@dataclass(slots=True)
class Service:
    """One running instance, without a face."""

    settings: Settings
    registry: Registry
    facts: Facts
    clock: Clock
    tasks: TaskGroup
    reader: Reader
    pipeline: Pipeline
    metrics: Metrics
    store: AnswerFile
    treasury: Treasury

    def ready(self) -> dict[str, bool]:
        """What must hold for this instance to take calls."""
        return {"storage": self.settings.data_dir.is_dir()}


def facts_of(settings: Settings, base_url: str) -> Facts:
    """What documents say about this server."""
    return Facts(
        base_url=base_url,
        source=urlsplit(base_url).hostname or "localhost",
        contact=settings.upstream.contact,
        simulated=settings.upstream.via is not None,
        ledger="embedded" if settings.ledger.url is None else "followed",
        sales=sales_of(settings),
        limits=LimitFacts(
            free_per_day=settings.limits.daily,
            free_spacing_s=int(settings.limits.spacing_s),
            payment_per_minute=settings.limits.personal_per_minute,
            premium_per_minute=settings.limits.premium_per_minute,
        ),
    )


def host_of(settings: Settings, clock: Clock, usage: Usage, treasury: Treasury) -> Host:
    """What tools may know of this service."""
    return Host(
        clock,
        settings.data_dir,
        probe_targets=settings.probes.targets,
        usage=usage,
        evidence=treasury.evidence,
        payments=treasury.payments,
        blocks=settings.onchain.blocks,
        x402=topups_of(treasury.x402, treasury.ledger),
    )


def limits_of(settings: Limits, clock: Clock) -> dict[str, Any]:
    """The three limits of the pipeline, as they are set."""
    shared: dict[str, Any] = {"monotonic": clock.monotonic, "enabled": settings.enabled, "keys": settings.clients}
    return {
        "limits": FreeLimits(daily=settings.daily, spacing_s=settings.spacing_s, **shared),
        "personal": PersonalLimits(per_minute=settings.personal_per_minute, **shared),
        "premium": PersonalLimits(per_minute=settings.premium_per_minute, name="premium", **shared),
    }


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    base_url: str,
    registry: Registry | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Service]:
    """A service that runs until the block is left: then what waits is finished and written, in a few seconds."""
    via = settings.upstream.via
    followed = FollowedClock() if via and clock is None else None
    clock = clock or followed or SystemClock()
    registry = registry or Registry.load(*settings.tools)
    facts = facts_of(settings, base_url)
    metrics = Metrics()
    contact = f"; {settings.upstream.contact}" if settings.upstream.contact else ""
    reader = Reader(
        clock=clock,
        keys=settings.keys,
        user_agent=f"toolserver/{__version__} (+{base_url}{contact})",
        licence_policy=settings.sources.licence_policy,
        via=settings.upstream.via,
        observe=metrics.fetched,
    )
    async with (
        opened_treasury(settings, clock=clock, base_url=base_url, service=facts.source) as treasury,
        opened(settings.data_dir / "answers.sqlite3", MIGRATIONS) as db,
    ):
        store = AnswerFile(db, now=clock.now)
        async with anyio.create_task_group() as writer:
            await writer.start(store.run)
            history = History(store.save_point)
            history.restore(await store.load_history())
            usage = Usage(clock.now)
            usage.restore(await store.load_usage(int(clock.time() // 3600) - KEEP_H))
            async with anyio.create_task_group() as tasks:
                cache = SourceCache(reader, clock=clock, tasks=tasks, store=store)
                answers = Answers(
                    cache,
                    clock=clock,
                    tasks=tasks,
                    source=facts.source,
                    simulated=facts.simulated,
                    hedge_after_s=settings.upstream.hedge_after_s,
                    host=host_of(settings, clock, usage, treasury),
                    history=history,
                    store=store,
                    pack=StoredAnswer,
                )
                pipeline = Pipeline(
                    answers,
                    ledger=treasury.ledger,
                    idempotency=treasury.idempotency,
                    metrics=metrics,
                    usage=usage,
                    receipts=treasury.evidence,
                    counter=treasury.counter,
                    x402=exact_of(
                        treasury.x402,
                        answers=answers,
                        idempotency=treasury.idempotency,
                        metrics=metrics,
                        receipts=treasury.evidence,
                    ),
                    **limits_of(settings.limits, clock),
                )
                if (ledger := treasury.followed) is not None:
                    metrics.follow(lambda: ledger.health)
                tasks.start_soon(keep_usage, usage, store)
                if followed is not None and via is not None:
                    await tasks.start(follow, followed, via)
                tasks.start_soon(keep_warm, registry, cache)
                tasks.start_soon(follow_asked, registry, pipeline, clock)
                try:
                    yield Service(settings, registry, facts, clock, tasks, reader, pipeline, metrics, store, treasury)
                finally:
                    store.save_usage(usage.rows())
                    tasks.cancel_scope.cancel()
            with anyio.move_on_after(2, shield=True):
                await reader.aclose()
            writer.cancel_scope.cancel()


class App:
    """The ASGI callable: starts the service with the server's lifespan, then hands every request to the REST face.

    `failure` says why the service could not be started.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        base_url: str,
        everything: bool = False,
        on_ready: Callable[[Service], Awaitable[None]] | None = None,
        **parts: Any,
    ) -> None:
        self._settings, self._base_url, self._everything = settings, base_url, everything
        self._on_ready, self._parts = on_ready, parts
        self._face: Face | None = None
        self.failure: str | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and self._face is not None:
            await self._face(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        started = False
        try:
            async with running(self._settings, base_url=self._base_url, **self._parts) as service:
                self._face = self._faces(service)
                if self._on_ready is not None:
                    await self._on_ready(service)
                started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:
            if started:
                raise
            log.debug("the service could not start", exc_info=True)
            self.failure = f"{type(error).__name__}: {error}"
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    def _faces(self, service: Service) -> Face:
        settings = service.settings
        addresses = Addresses(settings.limits.trusted_proxies)
        mcp = McpEndpoint(
            service.registry,
            service.pipeline,
            tasks=service.tasks,
            addresses=addresses,
            base_url=service.facts.base_url,
            source_name=service.facts.source,
            allowed_hosts=settings.mcp.allowed_hosts,
            allowed_origins=settings.mcp.allowed_origins,
            strict_versions=settings.mcp.strict_versions,
            body_limit=settings.limits.body_bytes,
            everything=self._everything,
        )
        return Face(
            service.registry,
            service.pipeline,
            facts=service.facts,
            clock=service.clock,
            addresses=addresses,
            body_limit=settings.limits.body_bytes,
            pages={
                **pages_of(service.registry, service.facts, service.clock, service.ready),
                **receipts.pages(service.treasury.evidence, limits=service.pipeline.personal, addresses=addresses),
                **(x402.pages(paid.terms, service.registry) if (paid := service.treasury.x402) else {}),
            },
            mounted={"/api/mcp": mcp, "/api/mcp/": mcp, **_passed_on(service)},
        )


def _passed_on(service: Service) -> dict[str, Any]:
    """What the owner of a ledger that is followed answers itself, beyond what its tools can be asked."""
    if service.treasury.followed is None or service.settings.ledger.public_url is None:
        return {}
    from toolserver.payments.elsewhere import Elsewhere, forwarding

    assert isinstance(service.treasury.payments, Elsewhere)

    def refused(rejected: CallRejected) -> tuple[int, bytes]:
        told = problems.body(
            rejected.code, rejected.detail, facts=service.facts, request_id=ids.request_id(), **rejected.extra
        )
        return rejected.status, json_bytes(told)

    return {TOPUP: forwarding(service.treasury.payments, TOPUP, refused=refused)}
