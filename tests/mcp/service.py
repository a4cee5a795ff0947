"""A service of five tools on one source that answers from memory, for tests of the MCP face."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import anyio
import httpx
from pydantic import Field

from tests.arranged import FACTS, arrange_service
from toolserver.app import Service as Engine
from toolserver.calls.payment_links import PaymentLinks
from toolserver.calls.pipeline import Pipeline
from toolserver.clock import ManualClock
from toolserver.context.context import ToolContext, via
from toolserver.core.caller import Caller
from toolserver.core.models import Payload
from toolserver.mcp import messages
from toolserver.mcp.endpoint import McpEndpoint
from toolserver.mcp.sdk import McpExtension
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.receipts.keys import KeyRing
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.registry.site_facts import Sales, SiteFacts
from toolserver.serving.money import memory_money
from toolserver.settings import LimitSettings, McpSettings
from toolserver.upstream.source import Get, HostGroup, Licence, Source, SourceAnswer, SourceDown

START = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
TOKEN = "svc_live_" + "ab" * 32
POOR = "svc_live_" + "cd" * 32
BASE_URL = FACTS.base_url

WORDS: Source[str, str] = Source(
    "Dictionary.words",
    lambda query, keys: Get(f"https://words.example/{query}"),
    lambda body, query: str(body),
    Licence("yes", "The dictionary"),
    HostGroup("words", 4, 0, 100, 60),
    fresh_s=60,
    keep_s=3600,
    timeout_s=5,
)


class Word(Payload):
    word: str
    meaning: str | None = Field(description="Null when nobody knows")
    length: int = Field(ge=0)


class Echo(Payload):
    text: str
    times: int


@tool(path="/api/word", title="Word of the day", ttl_s=60, toolset="core", sources=[WORDS])
async def word(ctx: ToolContext) -> Word:
    """The word of the day, with "quotes", a backslash \\ and ünïcödé. Use echo to hear your own."""
    found = await ctx.first("data", via(WORDS, "today"))
    return Word(word=found, meaning=None, length=len(found))


@tool(path="/api/echo", title="Echo", ttl_s=60, toolset="core", aliases=("parrot",))
async def echo(
    ctx: ToolContext,
    text: Annotated[str, Field(max_length=200, description="What to say")],
    times: Annotated[int, Field(ge=1, le=9)] = 1,
    mood: Literal["calm", "loud"] | None = None,
) -> Echo:
    """Your own text, as often as you like. Use word for the word of the day."""
    return Echo(text=text.upper() if mood == "loud" else text, times=times)


@tool(path="/api/pro/oracle", title="Oracle", ttl_s=60, toolset="core", tier=Tier.PREMIUM, credits=2, sources=[WORDS])
async def oracle(ctx: ToolContext, question: str = "why") -> Word:
    """The answer to a question, for two credits. Use word when you have no question."""
    found = await ctx.first("data", via(WORDS, question))
    return Word(word=found, meaning="42", length=len(found))


@tool(path="/api/coin", title="Coin", toolset="all")
async def coin(ctx: ToolContext) -> Word:
    """Heads or tails, anew for every call. Use word for something to read."""
    return Word(word="heads", meaning=None, length=5)


@tool(path="/api/broken", title="Broken", toolset="all")
async def broken(ctx: ToolContext) -> Word:
    """Fails in a way nobody foresaw, so that we see what a client is told about it."""
    raise RuntimeError("the inside must not be seen")


TOOLS = (word, echo, oracle, coin, broken)


@dataclass
class MemoryDesk:
    """Answers at once. `down` makes it fail, `hold` makes it wait, `slow` makes it wait so many seconds for "slow"."""

    clock: ManualClock
    down: bool = False
    hold: anyio.Event | None = None
    slow: float = 0.0
    asked: list[str] = field(default_factory=list)
    text: str = 'gl"ück\\'

    async def fresh(self, source: Source[Any, Any], query: Any, *, sla_s: float, **how: bool) -> SourceAnswer[Any]:
        self.asked.append(query)
        if self.hold is not None:
            await self.hold.wait()
        if query == "slow":
            await anyio.sleep(self.slow)
        if self.down:
            raise SourceDown("arranged", word="http_503")
        return SourceAnswer(self.text, self.clock.now(), None, None, latency_ms=3)

    async def kept(self, source: Source[Any, Any], query: Any) -> SourceAnswer[Any] | None:
        return None


class FixedReceipts:
    """Signs everything with the same words. Other things are sealed by a ring of keys, if a test gives one."""

    def __init__(self, ring: KeyRing | None = None) -> None:
        self.rings = {} if ring is None else {"receipts": ring}

    async def sign(self, *facts: Any) -> tuple[str, str]:
        return "rcpt_0123", "head.body.signature"

    async def unheard(self, *facts: Any) -> None:
        """Nobody listens."""


@dataclass
class Service:
    """Everything of one test service."""

    registry: Registry
    pipeline: Pipeline
    endpoint: McpEndpoint
    desk: MemoryDesk
    ledger: MemoryLedger
    clock: ManualClock
    facts: SiteFacts
    links: PaymentLinks | None
    engine: Engine

    def client(self, **named: Any) -> httpx.AsyncClient:
        """An HTTP client of the endpoint, in process."""
        transport = httpx.ASGITransport(self.endpoint, raise_app_exceptions=True)
        return httpx.AsyncClient(transport=transport, base_url=named.pop("base_url", "http://127.0.0.1:8080"), **named)

    def caller(self, **named: Any) -> Caller:
        return Caller(client="local", limited=False, transport="stdio", **named)


@tool(path="/api/finder", title="Finder", toolset="core", spaced=False, runs_tools=True)
async def finder(ctx: ToolContext, q: str | None = None) -> Word:
    """Finds tools, and runs those that are free. It is in no service by itself."""
    return Word(word=ctx.host.tools.describe(q or "", 1)[0]["name"], meaning=None, length=1)


def registry(*more: Any) -> Registry:
    return Registry(operation_of(function) for function in (*TOOLS, *more))


@asynccontextmanager
async def running(
    *,
    limited: bool = False,
    extension: McpExtension | None = None,
    base_url: str = BASE_URL,
    body_limit: int = 65_536,
    more: tuple[Any, ...] = (),
    ring: KeyRing | None = None,
    clock: ManualClock | None = None,
    **mcp: Any,
) -> AsyncIterator[Service]:
    """The service and `more` tools, with a token of 100 credits and one of one. `mcp` are settings of the endpoint.

    With a `ring` of keys it sells credits.
    """
    clock = clock or ManualClock(START)
    desk, money, ledger = MemoryDesk(clock), memory_money(clock), MemoryLedger(clock)
    ledger.fund(TOKEN, 100)
    ledger.fund(POOR, 1)
    limits = LimitSettings(enabled=limited, daily=1000, body_bytes=body_limit, trusted_proxies=["10.0.0.0/8"])
    async with arrange_service(
        registry(*more),
        clock,
        facts=SiteFacts(base_url, FACTS.source, sales=None if ring is None else Sales()),
        reader=desk,
        money=replace(money, own=ledger, evidence=FixedReceipts(ring)),
        limits=limits,
        mcp=McpSettings(**mcp),
    ) as service:
        endpoint = service.mcp_endpoint(extension)
        links = service.links
        yield Service(service.registry, service.pipeline, endpoint, desk, ledger, clock, service.facts, links, service)


MODERN_META = {messages.VERSION_KEY: messages.MODERN, messages.CAPABILITIES_KEY: {}}


def asked(method: str, params: dict[str, Any] | None = None, *, value: Any = 1, modern: bool = False) -> dict[str, Any]:
    """A JSON-RPC request."""
    params = dict(params or {})
    if modern:
        params["_meta"] = MODERN_META | params.get("_meta", {})
    return {"jsonrpc": "2.0", "id": value, "method": method, "params": params}


def headers_for(message: dict[str, Any], version: str | None = None) -> dict[str, str]:
    """The headers a client sends with a message."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if version is not None:
        headers["mcp-protocol-version"] = version
    if version == messages.MODERN:
        headers["mcp-method"] = message["method"]
        if message["method"] == "tools/call":
            headers["mcp-name"] = message["params"]["name"]
    return headers
