"""The composition root: makes a running service from settings, and an ASGI callable from the service.

Only `Service.build` assembles the parts of a service: `serve`, `demo`, `stdio`, `call`, `doctor` and the tests all use
it. No lower module imports this one, and only this module imports the faces.
"""

import functools
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from catalog import hosts, llms_txt, server_card
from catalog.llm_tools import answer_query
from rest_bridge.discovery import as_json
from rest_bridge.documents import documents
from rest_bridge.face import Face
from rest_bridge.money_pages import money_pages
from rest_bridge.pages.account import mount_visitor_tokens
from rest_bridge.pages.buy import mount_buying
from rest_bridge.pages.consent import make_consent_page
from rest_bridge.pages.doc_search import search_handlers
from rest_bridge.pages.front import front_handlers
from rest_bridge.pages.guides import SEARCH
from rest_bridge.pages.home import home
from rest_bridge.pages.operators import OperatorsFace
from rest_bridge.pages.social_card import DRAW_EVERY_S, SocialCards, card_handlers
from rest_bridge.pages.status import status_handlers
from rest_bridge.pages.tool import mount_tries
from rest_bridge.pages.views import Views
from rest_bridge.site import site_handlers
from rest_bridge.x402 import forward_topups
from toolserver import __version__
from toolserver.calls.allowances import ALLOWANCE_PATH, Allowances
from toolserver.calls.front_values import FrontReader
from toolserver.calls.live_values import LiveValues
from toolserver.calls.paid_call import CallMoney
from toolserver.calls.payment_links import PaymentLinks
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.rate_limit import CallLimits, FreeLimits, PersonalLimits, UnchargedLimit
from toolserver.calls.response import AnswerOrigin
from toolserver.calls.response_cache import ResponseCache, StoredResponses
from toolserver.calls.shared_answers import SharedResponses
from toolserver.calls.shared_limits import (
    SharedFreeLimits,
    SharedPersonalLimits,
    SharedUnchargedLimit,
    SharedVisitorCounts,
)
from toolserver.calls.token_limits import TOKEN_PATH, TokenLimits
from toolserver.calls.visitor_tokens import (
    KEY_BYTES,
    VisitorCounts,
    VisitorIssuer,
    VisitorRules,
    VisitorTokens,
    open_visitor_key,
)
from toolserver.clock import Clock, ClockSkew, SteeredClock, SystemClock
from toolserver.context.context import Surroundings, TimeSeriesStore
from toolserver.context.service_info import ServiceInfo
from toolserver.core import tracing
from toolserver.core.caller import Addresses
from toolserver.core.metrics import KEEP_H, Metrics, Usage
from toolserver.core.outbound import read_proxies
from toolserver.core.public_address import is_address
from toolserver.core.shared_memory import SharedMemory
from toolserver.core.shared_seal import SEAL_OF_THIS_PROCESS, SharedSeal
from toolserver.mcp.elicitation import PaymentElicitation
from toolserver.mcp.endpoint import McpEndpoint
from toolserver.mcp.events import McpEvents
from toolserver.mcp.messages import LEGACY, MODERN
from toolserver.mcp.oauth.service import OAuthOff, OAuthService, find_reason_against, open_oauth
from toolserver.mcp.resources import McpResources
from toolserver.mcp.sdk import McpExtension
from toolserver.mcp.skills import BUY_CREDITS, VERIFY_A_RECEIPT, WATCH_SOMETHING, read_skills
from toolserver.money.purchases.credit_sales import ChainServers
from toolserver.money.x402.wire import TOPUP_PATH
from toolserver.registry.licence_table import withhold
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import Document, SiteFacts, sells
from toolserver.registry.source_list import digest_source_list, list_sources
from toolserver.registry.tool_index import ToolIndex
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.background_tasks import keep_usage, open_tasks, repeat, start_composing
from toolserver.serving.data_directory import UntrustedProxyNote
from toolserver.serving.instance_watch import MEASURE_EVERY_S, InstanceWatch
from toolserver.serving.known_sources import KnownSources
from toolserver.serving.money import MoneyParts, memory_money, open_money
from toolserver.serving.packaged_texts import read_examples, read_guide, read_licence_table, read_texts
from toolserver.serving.public_facts import read_public_facts, read_rights, read_sales
from toolserver.serving.readiness import Readiness
from toolserver.serving.service_status import ServiceStatus
from toolserver.serving.webhooks import WebhookService, open_webhooks
from toolserver.settings import LimitSettings, Settings, is_loopback
from toolserver.shared.redis import RedisMemory, open_redis
from toolserver.shared.redis_faults import REDIS_URL
from toolserver.sql.failures import explain
from toolserver.sql.persistent_cache import MIGRATIONS, PersistentCache, StoredAnswer, open_database
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import HttpSender, RecordExchange
from toolserver.upstream.member_watch import MemberWatch
from toolserver.upstream.network_watch import NetworkWatch
from toolserver.upstream.outlier_guard import SERIES, SizeGuard
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.shared_fetch import FetchInMemory
from toolserver.upstream.source import SourceReader
from toolserver.upstream.source_health import SourceHistory
from toolserver.world.remote_clock import FollowedClock, follow

if TYPE_CHECKING:  # loaded where something is sold
    from toolserver.money.x402.exact import ExactScheme
    from toolserver.money.x402.topup import Topups

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


@dataclass(slots=True, kw_only=True)
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
    oauth: OAuthService | OAuthOff
    live: LiveValues
    front: FrontReader
    cards: SocialCards
    status: ServiceStatus
    readiness: Readiness
    addresses: Addresses
    visitors: VisitorIssuer
    watch: InstanceWatch
    links: PaymentLinks | None

    @classmethod
    @asynccontextmanager
    async def build(cls, settings: Settings, parts: "ServiceParts | None" = None) -> AsyncIterator["Service"]:
        """Run a service until the block ends. Work in progress is then finished and stored within seconds.

        Raises:
            OtherWorld, LedgerLost, NewerDatabase, ForeignDatabase, MigrationChanged, KeyFileBroken, NotAnAccountKey,
            StorageFailed: the data directory cannot be used; nothing in it was changed.
            UnknownSource: a contract in the settings is about no source of the tools.
        """
        parts = parts or ServiceParts()
        via = settings.upstream.via
        skew = ClockSkew()
        clock = parts.clock or choose_clock(via, skew)
        facts = parts.facts or read_public_facts(settings, parts.base_url or settings.base_url or LOCAL)
        registry = withhold(parts.registry or load_tools(settings, facts), read_licence_table(), facts.rights)
        metrics, usage = Metrics(), Usage(clock.now)
        async with AsyncExitStack() as stack:
            open_ = stack.enter_async_context
            if isinstance(clock, FollowedClock) and via is not None:  # before anything reads it
                clock_tasks = await open_(open_tasks())
                await clock_tasks.start(follow, clock, via)
            if parts.money is not None:
                money = parts.money
            elif parts.in_memory:
                money = memory_money(clock)
            else:
                money = await open_(
                    open_money(settings, clock=clock, base_url=facts.base_url, service=facts.source, skew=skew)
                )
            store = None if parts.in_memory else await open_(open_answers(settings.data_dir, clock))
            history, sources = await restore_history(store, usage, clock)
            memory = await open_(open_shared_memory(settings, metrics))
            seal = open_shared_seal(settings, memory, in_memory=parts.in_memory)
            fetcher = await open_(
                open_fetcher(
                    settings,
                    facts,
                    clock=clock,
                    metrics=metrics,
                    transport=parts.transport,
                    record=parts.record,
                    history=sources.history,
                    memory=memory,
                )
            )
            tasks = await open_(open_tasks())
            cache = SourceCache(
                fetcher,
                clock=clock,
                tasks=tasks,
                store=store,
                sizes=sources.sizes,
                members=sources.members,
                shared=None if memory is None else FetchInMemory(memory, SecretRemover(settings.keys), seal),
            )
            keeps_facts = via is None and not parts.in_memory  # a simulated world says nothing about real sources
            known = KnownSources(settings.data_dir if keeps_facts else None, fetcher, sources.members)
            info = ServiceInfo(
                clock,
                settings.data_dir,
                probe_targets=settings.probes.targets,
                usage=usage,
                evidence=money.evidence,
                payments=money.payments,
                statements=money.statements,
                blocks=settings.onchain.blocks,
                x402=make_topups(money, registry),
                allowances=Allowances(money.ledger, registry, clock),
                limits=TokenLimits(money.own, clock),
            )
            registry = await unlist_unavailable(registry, settings, money)
            info.tools = ToolIndex(registry.listed)
            answers = ResponseCache(
                parts.reader or cache,
                clock=clock,
                tasks=tasks,
                origin=AnswerOrigin(facts.source, facts.simulated, digest_source_list(registry, facts.rights)),
                hedge_after_s=settings.upstream.hedge_after_s,
                surroundings=Surroundings(info, history),
                stored=StoredResponses(
                    f"{facts.source}|{'simulated' if facts.simulated else 'live'}|{facts.rights.fingerprint}",
                    disk=store,
                    pack=StoredAnswer,
                    shared=None if memory is None else SharedResponses(memory, seal),
                ),
            )
            limits = make_limits(settings.limits, clock, memory)
            sales = CallMoney(
                ledger=money.ledger,
                idempotency=money.idempotency,
                receipts=money.evidence,
                receipted_charges=money.stored.receipted_charges,
                x402=make_exact_scheme(money, answers, metrics, limits),
            )
            keeps_nothing = parts.in_memory or money.file is None
            issuer = make_visitor_issuer(settings, clock, memory, in_memory=keeps_nothing)
            pipeline = Pipeline(answers, limits, sales, issuer.tokens, metrics, usage)
            webhooks = await open_(open_webhooks(settings, registry, pipeline, money, info, deliver=parts.deliver))
            oauth = await open_(
                open_oauth(
                    settings,
                    registry,
                    pipeline,
                    facts,
                    money.file,
                    issuer,
                    end_allowance=money.end_allowance,
                    find_payment=money.payments.find_payment,
                )
            )
            if find_reason_against(registry, facts, enabled=settings.oauth.enabled) is None:
                facts = replace(facts, oauth=True)
            readiness = Readiness(
                money.file,
                settings,
                monotonic=clock.monotonic,
                is_stopping=parts.is_stopping,
                sells=lambda: money.followed is None or money.followed.health.is_up,
                losses={
                    "redis": lambda: None if memory is None or not memory.is_lost else describe_redis_loss(memory),
                    "chain": lambda: describe_chain_loss(money.payments.count_servers()),
                    "clock": skew.describe,
                },
            )
            note_proxy = None if parts.in_memory else UntrustedProxyNote(settings.data_dir).note
            live = LiveValues(registry, answers)
            front = FrontReader(live, cache)
            cards = SocialCards(registry, facts, front, clock)
            money.add_gauges(metrics)
            watch = InstanceWatch(settings, readiness, money, skew, clock, None if webhooks is None else webhooks.store)
            metrics.register(watch)
            if parts.background:
                tasks.start_soon(repeat, "measure the instance", watch.measure, MEASURE_EVERY_S)
                tasks.start_soon(repeat, "draw pictures of tools", cards.draw_due, DRAW_EVERY_S)
                if store is not None:
                    tasks.start_soon(keep_usage, usage, store)
                start_composing(tasks, registry, cache, pipeline, live, memory)
            money.end_patience()
            try:
                yield cls(
                    settings=settings,
                    registry=registry,
                    facts=facts,
                    clock=clock,
                    tasks=tasks,
                    fetcher=fetcher,
                    cache=cache,
                    pipeline=pipeline,
                    metrics=metrics,
                    money=money,
                    info=info,
                    memory=memory,
                    webhooks=webhooks,
                    oauth=oauth,
                    live=live,
                    front=front,
                    cards=cards,
                    status=ServiceStatus(registry, fetcher, metrics, info, money, readiness, known),
                    readiness=readiness,
                    addresses=Addresses(settings.limits.trusted_proxies, note_proxy),
                    visitors=issuer,
                    watch=watch,
                    links=make_payment_links(registry, facts, money, clock, metrics),
                )
            finally:
                if store is not None:
                    store.save_usage(usage.rows())

    def mcp_endpoint(self, extension: McpExtension | None = None) -> McpEndpoint:
        """Return MCP over HTTP as one ASGI callable. An `extension` is for tests alone."""
        events = self._mcp_events()
        return McpEndpoint(
            self.registry,
            self.pipeline,
            tasks=self.tasks,
            addresses=self.addresses,
            facts=self.facts,
            settings=self.settings,
            extension=extension,
            events=events,
            resources=None if extension is not None else self.mcp_resources(has_events=events is not None),
            elicitation=None if self.links is None else PaymentElicitation(self.links, self.facts),
        )

    def _mcp_events(self) -> McpEvents | None:
        """Return MCP Events; None without webhooks, or without a tool that has events."""
        if self.webhooks is None or not self.webhooks.events.catalog:
            return None
        dialect = self.settings.mcp.events_dialect
        return McpEvents(self.webhooks.events, self.registry, self.pipeline, self.facts, dialect)

    def mcp_resources(self, *, has_events: bool) -> McpResources:
        """Return the resources of MCP, with the skills that this service can serve over one transport."""
        skills = {
            BUY_CREDITS: self.facts.sales is not None,
            VERIFY_A_RECEIPT: self.money.evidence is not None,
            WATCH_SOMETHING: has_events,
        }
        views = Views(self.registry, self.facts)
        return McpResources(
            self.registry,
            self.pipeline,
            find_view=views.find_address,
            read_view=views.read,
            read_document=read_guide,
            skills=read_skills([name for name, is_served in skills.items() if is_served]),
            evidence=self.money.evidence,
        )

    def web_app(self, extension: McpExtension | None = None) -> Face:
        """Return REST, MCP over HTTP and the pages as one ASGI callable."""
        return Face(
            self.registry,
            self.pipeline,
            facts=self.facts,
            addresses=self.addresses,
            body_limit=self.settings.limits.body_bytes,
            pages=_page_handlers(self),
            mounted=self._mount(self.mcp_endpoint(extension)),
        )

    def operators_app(self) -> OperatorsFace:
        """Return the operators' page as an ASGI callable for the address of the metrics."""
        host = self.settings.metrics.host
        return OperatorsFace(self.facts, self._read_report, self.clock, bound_to=host, is_private=is_loopback(host))

    async def _read_report(self) -> dict[str, Any]:
        """Return what the operators' page shows."""
        from toolserver.serving.operator_report import OperatorReport  # with the books: loaded by the first reader

        report = OperatorReport(
            settings=self.settings,
            money=self.money,
            status=self.status,
            readiness=self.readiness,
            fetcher=self.fetcher,
            webhooks=None if self.webhooks is None else self.webhooks.store,
            clock=self.clock,
        )
        return await report.read()

    def _mount(self, mcp: McpEndpoint) -> dict[str, Any]:
        """Return the ASGI callables that answer a whole path, by path."""
        mounted: dict[str, Any] = {"/api/mcp": mcp, "/api/mcp/": mcp}
        limits, via = self.pipeline.personal, self.settings.upstream.via
        mounted |= mount_buying(self.facts, self.money.payments, via, limits, self.addresses, self.links, self.clock)
        mounted |= mount_visitor_tokens(self.facts, self.visitors, limits, self.addresses)
        mounted |= mount_tries(self.registry, self.pipeline, self.facts, self.addresses, self.settings.limits)
        mounted |= self.oauth.mount(mcp, make_consent_page(self.facts), self.addresses)
        if self.money.followed is not None and self.settings.ledger.public_url is not None:
            mounted |= forward_topups(self.money.payments, self.facts)
        return mounted


def choose_clock(via: str | None, skew: ClockSkew) -> Clock:
    """Return the clock of the simulated world at `via`, else the machine's, or the database's if that is far off."""
    return FollowedClock() if via else SteeredClock(SystemClock(), skew)


def make_limits(settings: LimitSettings, clock: Clock, memory: SharedMemory | None) -> CallLimits:
    """Return the limits that the settings define. With `memory`, they hold over all instances."""
    free_kind: Callable[..., FreeLimits] = FreeLimits
    personal_kind: Callable[..., PersonalLimits] = PersonalLimits
    uncharged_kind: Callable[..., UnchargedLimit] = UnchargedLimit
    if memory is not None:
        free_kind = functools.partial(SharedFreeLimits, memory)
        personal_kind = functools.partial(SharedPersonalLimits, memory)
        uncharged_kind = functools.partial(SharedUnchargedLimit, memory)
    return CallLimits(
        free=free_kind(
            daily=settings.daily,
            spacing_s=settings.spacing_s,
            scope=settings.spacing_scope,
            monotonic=clock.monotonic,
            enabled=settings.enabled,
            keys=settings.clients,
        ),
        personal=personal_kind(
            per_minute=settings.personal_per_minute,
            monotonic=clock.monotonic,
            enabled=settings.enabled,
            keys=settings.clients,
        ),
        premium=personal_kind(
            per_minute=settings.premium_per_minute,
            name="premium",
            monotonic=clock.monotonic,
            enabled=settings.enabled,
            keys=settings.clients,
        ),
        uncharged=uncharged_kind(
            per_hour=settings.uncharged_per_hour,
            monotonic=clock.monotonic,
            enabled=settings.enabled,
            keys=settings.clients,
        ),
        pages=personal_kind(
            per_minute=settings.page_tries_per_minute,
            name="page tries",
            monotonic=clock.monotonic,
            enabled=settings.enabled,
            keys=settings.clients,
        ),
    )


def make_topups(money: MoneyParts, registry: Registry) -> "Topups | None":
    """Return the seller of credits for signed payments. Without such payments, return None, and load nothing of it."""
    if money.stored.x402 is None:
        return None
    from toolserver.money.x402.service import topups_of

    return topups_of(money.stored.x402, money.ledger, registry.get("payment_topup"))


def make_exact_scheme(
    money: MoneyParts, answers: ResponseCache, metrics: Metrics, limits: CallLimits
) -> "ExactScheme | None":
    """Return the seller of single answers for signed payments, in the same way."""
    if money.stored.x402 is None:
        return None
    from toolserver.money.x402.service import exact_of

    metrics.follow_waits(money.stored.x402.room.count)
    return exact_of(
        money.stored.x402,
        answers=answers,
        idempotency=money.idempotency,
        metrics=metrics,
        receipts=money.evidence,
        uncharged=limits.uncharged,
    )


def make_payment_links(
    registry: Registry, facts: SiteFacts, money: MoneyParts, clock: Clock, metrics: Metrics
) -> PaymentLinks | None:
    """Return the links by which people pay for calls in chats; None unless this service sells from its own ledger."""
    if facts.sales is None or not facts.sales.transfer or money.own is None or money.evidence is None:
        return None
    links = PaymentLinks(money.own, money.evidence.rings["receipts"], registry, clock)
    metrics.follow_waits(links.room.count)
    return links


def make_visitor_issuer(
    settings: Settings, clock: Clock, memory: SharedMemory | None, *, in_memory: bool
) -> VisitorIssuer:
    """Return the issuer of visitor tokens. With `memory`, its counts hold over all instances, as its key does.

    The key ends with the process if `in_memory`, or without limits, which issue none.

    Raise KeyFileBroken, OSError.
    """
    passing, limits = secrets.token_bytes(KEY_BYTES), settings.limits
    key = passing if in_memory or not limits.enabled else open_visitor_key(settings.data_dir, settings.scaling.keys_dir)
    rules = VisitorRules(
        cheap=limits.visitor_cheap_per_day,
        work_bits=limits.visitor_work_bits,
        most=limits.visitor_per_day,
        most_of_network=limits.visitor_network_per_day,
    )
    return VisitorIssuer(
        VisitorTokens(key, clock),
        VisitorCounts(rules, keys=limits.clients) if memory is None else SharedVisitorCounts(memory, rules),
        clock,
        secret=passing if memory is None else key or passing,
        enabled=limits.enabled,
    )


def load_tools(settings: Settings, facts: SiteFacts) -> Registry:
    """Load all tools. Raise UnknownSource for a contract about none of their sources."""
    registry = Registry.load(*tool_packages(settings.tools))
    facts.rights.check_names([source["name"] for source in list_sources(registry)])
    return registry


async def unlist_unavailable(registry: Registry, settings: Settings, money: MoneyParts) -> Registry:
    """Return the registry without the tools of allowances or the top-up where no ledger or seller offers them."""
    hidden: list[str] = []
    if money.own is None:
        hidden += [operation.name for operation in registry if operation.path == TOKEN_PATH]
    if money.followed is not None and not await money.followed.keeps_allowances():
        hidden += [operation.name for operation in registry if operation.path.startswith(ALLOWANCE_PATH)]
    if money.stored.x402 is None and settings.ledger.public_url is None and read_sales(settings) is None:
        hidden += [operation.name for operation in registry if operation.path == TOPUP_PATH]
    return registry.unlist(hidden)


@asynccontextmanager
async def open_answers(data_dir: Path, clock: Clock) -> AsyncIterator[PersistentCache]:
    """Open the answers on disk. Pending writes are completed when the block is left."""
    async with open_database(data_dir / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=clock.now)
        async with anyio.create_task_group() as writer:
            await writer.start(store.run)
            yield store
            writer.cancel_scope.cancel()


class SourceMemory(NamedTuple):
    """What is remembered of sources across restarts."""

    history: SourceHistory
    sizes: SizeGuard
    members: MemberWatch


async def restore_history(
    store: PersistentCache | None, usage: Usage, clock: Clock
) -> tuple[TimeSeriesStore, SourceMemory]:
    """Restore the usage counts, and return the stored time series and what is remembered of sources."""
    if store is None:
        return TimeSeriesStore(), SourceMemory(SourceHistory(clock), SizeGuard(), MemberWatch())
    history = TimeSeriesStore(store.save_point)
    sources = SourceMemory(SourceHistory(clock, store), SizeGuard(store.save_point), MemberWatch(store.save_members))
    sources.history.restore(await store.load_quarters(), await store.load_changes())
    points = await store.load_history()
    history.restore(point for point in points if point[0] != SERIES)
    sources.sizes.restore(points)
    sources.members.restore(await store.load_members())
    usage.restore(await store.load_usage(int(clock.time() // 3600) - KEEP_H))
    return history, sources


@asynccontextmanager
async def open_fetcher(
    settings: Settings,
    facts: SiteFacts,
    *,
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
    proxies = read_proxies(settings.upstream.proxy_address)
    sender = HttpSender(
        clock=clock,
        keys=settings.keys,
        user_agent=f"toolserver/{__version__} (+{facts.base_url}{contact})",
        via=settings.upstream.via,
        transport=transport,
        record=record,
        proxies=proxies,
    )
    is_real = settings.upstream.via is None and transport is None
    fetcher = Fetcher(
        sender,
        keys=settings.keys,
        rights=read_rights(settings),
        observe=metrics.fetched,
        history=history,
        memory=memory,
        network=NetworkWatch(
            sorted(settings.probes.targets.values(), key=is_address) if is_real else (),
            monotonic=clock.monotonic,
            proxies=proxies,
        ),
    )
    metrics.follow_budgets(fetcher.list_budgets)
    metrics.follow_waits(fetcher.count_waits)
    metrics.follow_announcements(fetcher.announcements.list_all)
    metrics.follow_closed(fetcher.refusals.list_closed, fetcher.health.list_open)
    try:
        yield fetcher
    finally:
        with anyio.move_on_after(2, shield=True):
            await fetcher.aclose()


def describe_redis_loss(memory: RedisMemory) -> str:
    """Say why Redis is lost, and what the instance does."""
    return f"{REDIS_URL}: {memory.fault}. Until then, this instance uses its own memory and its share of the limits."


def describe_chain_loss(servers: ChainServers | None) -> str | None:
    """Say that no RPC server of the chain answers; None if one does, or none is needed."""
    if servers is None or not servers.is_lost:
        return None
    return f"No credits can be bought: none of the {servers.configured} RPC servers (payments.rpc_urls) answers."


@asynccontextmanager
async def open_shared_memory(settings: Settings, metrics: Metrics) -> AsyncIterator[RedisMemory | None]:
    """Open the memory that instances share; None if there is only one. Raises RedisMissing, RedisRefused."""
    if settings.redis_url is None:
        yield None
        return
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


def open_shared_seal(settings: Settings, memory: SharedMemory | None, *, in_memory: bool) -> SharedSeal:
    """Return the seal of what instances share, by the key of visitor tokens, which they have in common.

    Without that key, which a log line says, what others wrote is not used. Raise KeyFileBroken, OSError.
    """
    if memory is None or in_memory:
        return SEAL_OF_THIS_PROCESS
    key = open_visitor_key(settings.data_dir, settings.scaling.keys_dir)
    return SEAL_OF_THIS_PROCESS if key is None else SharedSeal(key)


class App:
    """The ASGI callable: builds the service with the server's lifespan, then hands every request to its web app.

    `failure` says in one line why the service could not start.
    """

    def __init__(
        self,
        settings: Settings,
        parts: ServiceParts | None = None,
        *,
        extension: McpExtension | None = None,
        on_ready: Callable[[Service], Awaitable[None]] | None = None,
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._extension = extension
        self._on_ready = on_ready
        self._face: Face | None = None
        self.failure: str | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and self._face is not None:
            if tracing.tracer is None:
                await self._face(scope, receive, send)
                return
            await tracing.serve(self._face, scope, receive, send)
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
                self._face = service.web_app(self._extension)
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
    """Return every document that depends only on the registry and the facts, by path, each written when it is read."""
    snippets = hosts.snippets(facts, token=sells(registry))
    site = documents(registry, facts, snippets=snippets, **read_texts())
    site |= server_card.documents(registry, facts, [*LEGACY, MODERN])
    return site | llms_txt.documents(registry, facts)


def _read_search_index(registry: Registry, facts: SiteFacts) -> bytes:
    """Return the entries that the documentation's search finds, as JSON."""
    written = write_site_documents(registry, facts)
    return written[SEARCH].body if SEARCH in written else b"[]"


def write_home(registry: Registry, facts: SiteFacts) -> Document:
    """Return the home page without values. It does not wait for all other documents, because it is opened first."""
    return home(registry, facts, hosts.snippets(facts, token=sells(registry)), read_examples())


def _page_handlers(service: Service) -> dict[str, Any]:
    """Return every page and document of a service, by path."""
    registry, facts = service.registry, service.facts

    def tool_definitions(query: Mapping[str, str]) -> Document:
        return as_json(answer_query(registry, facts, query, generated_at=service.clock.now()))

    site = site_handlers(
        registry,
        documents=lambda: write_site_documents(registry, facts),
        tool_definitions=tool_definitions,
        ready=service.readiness.describe,
        sells=service.readiness.describe_ledger,
        live=service.live,
        read_answer=service.front.read_answer,
    )
    return (
        site
        | service.cards.watch(site)
        | search_handlers(registry, facts, lambda: _read_search_index(registry, facts))
        | front_handlers(registry, facts, service.front, service.clock, lambda: write_home(registry, facts))
        | card_handlers(service.cards)
        | status_handlers(registry, facts, service.status.read, service.clock)
        | money_pages(
            registry,
            facts,
            service.clock,
            evidence=service.money.evidence,
            x402_terms=None if service.money.stored.x402 is None else service.money.stored.x402.terms,
            check_token=service.money.ledger.balance,
            identify=service.pipeline.tokens.identify_client,
            limits=service.pipeline.personal,
            addresses=service.addresses,
        )
    )
