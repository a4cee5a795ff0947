"""A service of five tools on one source that answers from memory, for tests of the MCP face."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import anyio
import httpx
from anyio.abc import TaskGroup
from pydantic import Field

from toolserver.access import Addresses, Caller
from toolserver.answers import Answers
from toolserver.billing.ledger import MemoryLedger
from toolserver.clock import ManualClock
from toolserver.context import ToolContext, via
from toolserver.documents import Facts
from toolserver.errors import SourceDown
from toolserver.idempotency import MemoryIdempotency
from toolserver.limits import FreeLimits
from toolserver.metrics import Metrics
from toolserver.payloads import Payload
from toolserver.pipeline import Pipeline
from toolserver.protocol import wire
from toolserver.protocol.endpoint import McpEndpoint
from toolserver.registry import Registry, Tier, operation_of, tool
from toolserver.upstream.answer import Answer
from toolserver.upstream.source import Get, HostGroup, Licence, Source

START = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
TOKEN = "svc_live_" + "ab" * 32
POOR = "svc_live_" + "cd" * 32
BASE_URL = "https://data.example"

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

    async def fresh(self, source: Source[Any, Any], query: Any, *, sla_s: float) -> Answer[Any]:
        self.asked.append(query)
        if self.hold is not None:
            await self.hold.wait()
        if query == "slow":
            await anyio.sleep(self.slow)
        if self.down:
            raise SourceDown("arranged", word="http_503")
        return Answer(self.text, self.clock.now(), None, None, latency_ms=3)

    async def kept(self, source: Source[Any, Any], query: Any) -> Answer[Any] | None:
        return None


class FixedReceipts:
    """Signs everything with the same words."""

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
    tasks: TaskGroup
    facts: Facts

    def client(self, **named: Any) -> httpx.AsyncClient:
        """An HTTP client of the endpoint, in process."""
        transport = httpx.ASGITransport(self.endpoint, raise_app_exceptions=True)
        return httpx.AsyncClient(transport=transport, base_url=named.pop("base_url", "http://127.0.0.1:8080"), **named)

    def caller(self, **named: Any) -> Caller:
        return Caller(client="local", limited=False, door="stdio", **named)


def registry() -> Registry:
    return Registry(operation_of(function) for function in TOOLS)


@asynccontextmanager
async def running(*, limited: bool = False, base_url: str = BASE_URL, **named: Any) -> AsyncIterator[Service]:
    """The service, with a token of 100 credits and one of none."""
    clock = ManualClock(START)
    desk = MemoryDesk(clock)
    ledger = MemoryLedger()
    ledger.fund(TOKEN, 100)
    ledger.fund(POOR, 1)
    facts = Facts(base_url, "data.example")
    async with anyio.create_task_group() as tasks:
        pipeline = Pipeline(
            Answers(desk, clock=clock, tasks=tasks, source=facts.source),
            ledger=ledger,
            limits=FreeLimits(daily=1000, spacing_s=30, monotonic=clock.monotonic, enabled=limited),
            idempotency=MemoryIdempotency(clock),
            metrics=Metrics(),
            receipts=FixedReceipts(),
        )
        tools = named.pop("registry", None) or registry()
        endpoint = McpEndpoint(
            tools,
            pipeline,
            tasks=tasks,
            addresses=Addresses(["10.0.0.0/8"]),
            base_url=base_url,
            source_name=facts.source,
            **named,
        )
        yield Service(tools, pipeline, endpoint, desk, ledger, clock, tasks, facts)
        tasks.cancel_scope.cancel()


MODERN_META = {wire.VERSION_KEY: wire.MODERN, wire.CAPABILITIES_KEY: {}}


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
    if version == wire.MODERN:
        headers["mcp-method"] = message["method"]
        if message["method"] == "tools/call":
            headers["mcp-name"] = message["params"]["name"]
    return headers
