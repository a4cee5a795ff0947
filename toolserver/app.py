"""The composition root: makes a running service from settings, and an ASGI callable from the service.

Only `Service.build` assembles the parts of a service: `serve`, `demo`, `stdio`, `call`, `doctor` and the tests all use
it. No lower module imports this one, and only this module imports the faces.
"""

import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from anyio.abc import TaskGroup

from rest_bridge import status
from rest_bridge.buying import mount_buying
from rest_bridge.face import Face
from rest_bridge.money_pages import money_pages
from rest_bridge.operators import OperatorsFace
from rest_bridge.pages.consent import make_consent_page
from rest_bridge.site import site_handlers
from rest_bridge.x402 import forward_topups
from toolserver.calls.live_values import LiveValues
from toolserver.calls.pipeline import Pipeline
from toolserver.clock import Clock, SystemClock
from toolserver.context.service_info import ServiceInfo
from toolserver.core.caller import Addresses
from toolserver.core.metrics import Metrics
from toolserver.core.shared_memory import SharedMemory
from toolserver.core.usage_stats import Usage
from toolserver.mcp.endpoint import McpEndpoint
from toolserver.mcp.oauth.service import OAuthOff, OAuthService, open_oauth
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import Document, SiteFacts, sells
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.assembly import (
    build_answers,
    build_pipeline,
    build_source_cache,
    describe_service,
    make_addresses,
    make_readiness,
    open_allowances,
    open_fetcher,
    open_shared_memory,
    open_store,
    open_tasks,
    restore_history,
    unlist_topups,
)
from toolserver.serving.background_tasks import keep_usage, start_composing
from toolserver.serving.money import MoneyParts, memory_money, open_money
from toolserver.serving.operator_report import OperatorReport
from toolserver.serving.packaged_texts import read_texts
from toolserver.serving.public_facts import read_public_facts
from toolserver.serving.readiness import Readiness
from toolserver.serving.service_status import ServiceStatus
from toolserver.serving.webhooks import open_service_webhooks
from toolserver.settings import Settings, is_loopback
from toolserver.sql.failures import explain
from toolserver.sql.persistent_cache import PersistentCache
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import RecordExchange
from toolserver.upstream.reading import SourceReader
from toolserver.webhooks.service import WebhookService
from toolserver.world.remote_clock import FollowedClock, follow

log = logging.getLogger(__name__)

LOCAL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """Parts that replace those that a service makes from its settings. Each is optional.

    A test of a face passes a registry, a `ManualClock`, an httpx transport and `in_memory=True, background=False`.
    """

    base_url: str | None = None
    """The public address, if it is known only after a port is bound."""
    facts: SiteFacts | None = None
    """What documents say about this server, instead of the settings and `base_url`."""
    registry: Registry | None = None
    clock: Clock | None = None
    transport: Any = None
    """An `httpx.AsyncBaseTransport` that all requests to upstreams go through."""
    reader: SourceReader | None = None
    """Replaces the source cache, and with it everything that would query an upstream."""
    money: MoneyParts | None = None
    """The accounts, opened and closed by the caller. None opens those of the data directory or of `memory_money`."""
    in_memory: bool = False
    """True to store nothing: no answers on disk, and a ledger that ends with the process."""
    deliver: bool = False
    """True to deliver due webhooks, which only a server does."""
    is_stopping: Callable[[], bool] = lambda: False
    """Returns True while the server shuts down, so that `/readyz` can say so."""
    record: RecordExchange | None = None
    """Called with every exchange with an upstream."""
    background: bool = True
    """True to keep sources warm, recompose followed tools and store usage counts automatically."""


@dataclass(slots=True)
class Service:
    """One running instance. Its faces are made by `web_app`; `stdio` and the command line use the pipeline itself."""

    settings: Settings
    registry: Registry
    facts: SiteFacts
    clock: Clock
    tasks: TaskGroup
    fetcher: Fetcher
    cache: SourceCache
    pipeline: Pipeline
    metrics: Metrics
    money: MoneyParts
    info: ServiceInfo
    memory: SharedMemory | None
    webhooks: WebhookService | None
    oauth: OAuthService | OAuthOff = field(init=False)
    live: LiveValues = field(init=False)
    status: ServiceStatus = field(init=False)
    readiness: Readiness = field(init=False)
    addresses: Addresses = field(init=False)

    @classmethod
    @asynccontextmanager
    async def build(cls, settings: Settings, parts: "ServiceParts | None" = None) -> AsyncIterator["Service"]:
        """Run a service until the block ends. Work in progress is then finished and stored within seconds.

        Raises:
            OtherWorld, LedgerLost, NewerDatabase, ForeignDatabase, MigrationChanged, KeyFileBroken, NotAnAccountKey,
            StorageFailed: the data directory cannot be used; nothing in it was changed.
        """
        parts = parts or ServiceParts()
        clock = parts.clock or (FollowedClock() if settings.upstream.via else SystemClock())
        registry = parts.registry or Registry.load(*tool_packages(settings.tools))
        facts = parts.facts or read_public_facts(settings, parts.base_url or settings.base_url or LOCAL)
        metrics, usage = Metrics(), Usage(clock.now)
        async with AsyncExitStack() as stack:
            open_ = stack.enter_async_context
            if isinstance(clock, FollowedClock) and settings.upstream.via is not None:  # before anything reads it
                await (await open_(open_tasks())).start(follow, clock, settings.upstream.via)
            money = await open_(_open_money(settings, parts, clock, facts))
            store = None if parts.in_memory else await open_(open_store(settings, clock))
            history, sources, sizes = await restore_history(store, usage, clock)
            memory = await open_(open_shared_memory(settings, metrics))
            fetching = (metrics, parts.transport, parts.record, sources, memory)
            fetcher = await open_(open_fetcher(settings, facts, clock, *fetching))
            tasks = await open_(open_tasks())
            cache = build_source_cache(settings, fetcher, clock, tasks, store, sizes, memory)
            info = describe_service(settings, clock, usage, money)
            registry = unlist_topups(await open_allowances(registry, money, clock, info), info, settings)
            kept = (parts.reader or cache, clock, tasks, info, history, store, memory)
            answers = build_answers(settings, registry, facts, *kept)
            pipeline = build_pipeline(settings.limits, answers, money, metrics, usage, memory)
            opening = open_service_webhooks(settings, registry, pipeline, money, info, deliver=parts.deliver)
            made = (clock, tasks, fetcher, cache, pipeline, metrics, money, info, memory, await open_(opening))
            service = cls(settings, registry, facts, *made)
            await service._start(store, parts, await open_(_open_oauth(service)))
            try:
                yield service
            finally:
                if store is not None:
                    store.save_usage(usage.rows())

    async def _start(self, store: PersistentCache | None, parts: ServiceParts, oauth: OAuthService | OAuthOff) -> None:
        """Start the background tasks of the service."""
        self.oauth = oauth
        if isinstance(oauth, OAuthService):
            self.facts = replace(self.facts, oauth=True)
        self.readiness = make_readiness(self.settings, self.money, self.clock, parts.is_stopping, self.memory)
        self.addresses = make_addresses(self.settings, noted=not parts.in_memory)
        self.live = LiveValues(self.registry, self.pipeline.answers)
        known = (self.metrics, self.info, self.money, self.readiness.check)
        self.status = ServiceStatus(self.registry, self.fetcher, *known)
        self.money.add_gauges(self.metrics)
        if not parts.background:
            return
        if store is not None:
            self.tasks.start_soon(keep_usage, self.info.usage, store)
        start_composing(self.tasks, self.registry, self.cache, self.pipeline, self.live, self.memory)

    def mcp_endpoint(self, *, everything: bool = False) -> McpEndpoint:
        """Return MCP over HTTP as one ASGI callable. `everything` adds the MCP conformance fixtures."""
        return McpEndpoint(
            self.registry,
            self.pipeline,
            tasks=self.tasks,
            addresses=self.addresses,
            base_url=self.facts.base_url,
            source_name=self.facts.source,
            body_limit=self.settings.limits.body_bytes,
            everything=everything,
            **self.settings.mcp.model_dump(),
        )

    def web_app(self, *, everything: bool = False) -> Face:
        """Return REST, MCP over HTTP and the pages as one ASGI callable. `everything` adds MCP conformance fixtures."""
        mcp = self.mcp_endpoint(everything=everything)
        known: dict[str, Any] = {"facts": self.facts, "clock": self.clock, "addresses": self.addresses}
        known["body_limit"] = self.settings.limits.body_bytes
        return Face(self.registry, self.pipeline, pages=_page_handlers(self), mounted=self._mount(mcp), **known)

    def operators_app(self) -> OperatorsFace:
        """Return the operators' page as an ASGI callable for the address of the metrics."""
        store, host = None if self.webhooks is None else self.webhooks.store, self.settings.metrics.host
        report = OperatorReport(self.settings, self.money, self.status, self.fetcher, store, self.clock)
        return OperatorsFace(self.facts, report.read, self.clock, bound_to=host, is_private=is_loopback(host))

    def _mount(self, mcp: McpEndpoint) -> dict[str, Any]:
        """Return the ASGI callables that answer a whole path, by path."""
        mounted: dict[str, Any] = {"/api/mcp": mcp, "/api/mcp/": mcp}
        limits, via = self.pipeline.personal, self.settings.upstream.via
        mounted |= mount_buying(self.facts, self.money.payments, via, limits, self.addresses)
        mounted |= self.oauth.mount(mcp, make_consent_page(self.facts), self.addresses)
        if self.money.followed is not None and self.settings.ledger.public_url is not None:
            mounted |= forward_topups(self.money.payments, self.facts)
        return mounted


@asynccontextmanager
async def _open_money(
    settings: Settings, parts: ServiceParts, clock: Clock, facts: SiteFacts
) -> AsyncIterator[MoneyParts]:
    if parts.money is not None or parts.in_memory:
        yield parts.money or memory_money(clock)
        return
    async with open_money(settings, clock=clock, base_url=facts.base_url, service=facts.source) as money:
        yield money


def _open_oauth(service: Service) -> AbstractAsyncContextManager[OAuthService | OAuthOff]:
    money = service.money
    return open_oauth(
        service.settings,
        service.registry,
        service.pipeline,
        service.facts,
        money.file,
        end_allowance=money.end_allowance,
        find_payment=money.payments.find_payment,
    )


class App:
    """The ASGI callable: builds the service with the server's lifespan, then hands every request to its web app.

    `failure` says in one line why the service could not start.
    """

    def __init__(
        self,
        settings: Settings,
        parts: ServiceParts | None = None,
        *,
        everything: bool = False,
        on_ready: Callable[[Service], Awaitable[None]] | None = None,
    ) -> None:
        self._settings, self._parts, self._everything, self._on_ready = settings, parts, everything, on_ready
        self._face: Face | None = None
        self.failure: str | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and self._face is not None:
            await self._face(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _run_lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        started = False
        try:
            async with Service.build(self._settings, self._parts) as service:
                self._face = service.web_app(everything=self._everything)
                if self._on_ready is not None:
                    await self._on_ready(service)
                started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:
            if started:
                raise
            self.failure = explain(error)
            await send({"type": "lifespan.startup.failed", "message": self.failure})
            return
        await send({"type": "lifespan.shutdown.complete"})


@functools.lru_cache(maxsize=2)
def write_site_documents(registry: Registry, facts: SiteFacts) -> Mapping[str, Document]:
    """Return every document that depends only on the registry and the facts, by path. Cached, since it is slow."""
    from catalog import hosts, llms_txt
    from rest_bridge.documents import documents

    snippets = hosts.snippets(facts, token=sells(registry))
    texts = read_texts()
    return documents(registry, facts, snippets=snippets, **texts) | llms_txt.documents(registry, facts)


def _page_handlers(service: Service) -> dict[str, Any]:
    """Return every page and document of a service, by path."""
    registry, facts = service.registry, service.facts

    def tool_definitions(given: Mapping[str, str]) -> Document:
        from catalog.llm_tools import answer_query
        from rest_bridge.discovery import as_json

        return as_json(answer_query(registry, facts, given, generated_at=service.clock.now()))

    found = site_handlers(
        registry,
        documents=lambda: write_site_documents(registry, facts),
        tool_definitions=tool_definitions,
        ready=service.readiness.check,
        degraded=service.readiness.list_degraded,
        live=service.live,
    )
    found |= status.pages(registry, facts, service.status.read, service.clock)
    personal, addresses = service.pipeline.personal, service.addresses
    return found | money_pages(registry, facts, service.clock, service.money, personal, addresses)
