"""The whole service on a ledger file, with limits, x402 and webhooks to this machine; whatever it sends is kept.

What tests of free rides ask: which bodies hold what is sold, and what was paid for them.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx

from tests.arranged import FACTS, client_of
from tests.calls.parts import POOR, RICH, START, engine
from tests.hostile.payable_chain import PayableChain, payable_chain
from tests.live.inbox import Inbox
from tests.money.x402.parts import PAY_TO, payload
from tests.served import VIA, Upstreams, all_tools
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.receipts.log import closes_at, hour_at
from toolserver.registry.registry import Operation, Tier
from toolserver.serving.connections import RequestGate
from toolserver.serving.money import MoneyParts, open_money
from toolserver.settings import Settings, UpstreamSettings, WebhookSettings, X402Settings

CHILD, GONE = "svc_live_" + "c" * 64, "svc_live_" + "d" * 64
FUNDS, CAP = 100_000, 5_000
CREDIT_ATOMIC = 20_000
BESIDE_S = 20
# What an answer says that holds nothing of what is sold: its frame, and what was asked for.
FRAME = frozenset(
    {"source", "endpoint", "generated_at", "captured_at", "stale", "_meta", "notes", "warning"}
    | {"since", "since_clamped", "counts", "sample_size"}
)


class CallClock(ManualClock):
    """A clock that moves by the short waits of calls, and not by those of what runs beside them again and again."""

    async def sleep(self, seconds: float) -> None:
        if seconds >= BESIDE_S:
            await anyio.sleep_forever()
        await super().sleep(seconds)


@dataclass
class Heard:
    """One answer, as far as it was sent. Its body may be cut short."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class PaidShop:
    """What an attempt touches. `heard` are the answers since it began."""

    app: Any
    client: httpx.AsyncClient
    money: MoneyParts
    clock: ManualClock
    upstreams: Upstreams
    chain: PayableChain
    inbox: Inbox
    heard: list[Heard] = field(default_factory=list)

    async def get(self, path: str, method: str = "GET", token: str | None = RICH, **headers: str) -> Heard:
        """A request over REST; `headers` are named with underscores."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= {} if token is None else {"authorization": f"Bearer {token}"}
        return self.keep(await self.client.request(method, path, headers=given))

    async def post(self, path: str, body: Any, token: str | None = RICH, **headers: str) -> Heard:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= {} if token is None else {"authorization": f"Bearer {token}"}
        return self.keep(await self.client.post(path, json=body, headers=given))

    async def tell(
        self, tool: str, arguments: Any = None, token: str | None = RICH, query: str = "", **meta: Any
    ) -> Heard:
        """A call over MCP."""
        return await self.post(f"/api/mcp?toolset=all{query}", call(tool, arguments, **meta), token)

    def keep(self, answer: httpx.Response) -> Heard:
        self.heard.append(Heard(answer.status_code, dict(answer.headers), answer.content))
        return self.heard[-1]

    async def send_raw(
        self,
        path: str,
        receive: Callable[[], Awaitable[dict[str, Any]]],
        *,
        fail_at: str = "",
        token: str = RICH,
        **headers: str,
    ) -> None:
        """A GET on the bare interface, by a client that goes away as `receive` says, or when something is sent."""
        heard = Heard(0, {}, b"")
        self.heard.append(heard)

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                heard.status = message["status"]
            heard.body += message.get("body", b"")
            if message["type"] == fail_at:
                raise OSError("the client is gone")

        lines = {"authorization": f"Bearer {token}"} | {k.replace("_", "-"): v for k, v in headers.items()}
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        scope |= {"headers": [(k.encode(), v.encode()) for k, v in lines.items()], "client": ("127.0.0.1", 1)}
        scope |= {"scheme": "https", "http_version": "1.1", "asgi": {"version": "3.0"}}
        try:
            await self.app(scope, receive, send)
        except OSError:
            assert fail_at

    def sign(self, tool: Operation, **changed: Any) -> dict[str, Any]:
        """A payment for a call of a tool."""
        until = str(int(self.clock.time()) + 110)
        return payload(tool.credits * CREDIT_ATOMIC, **({"validBefore": until} | changed))

    async def paid(self) -> int:
        """The credits that were paid so far, by tokens and by signed payments."""
        spent = FUNDS - await self.money.own.balance(RICH)
        return spent + sum(event["amount"] for event in self.chain.events) // CREDIT_ATOMIC

    async def close_hours(self) -> None:
        """Let the hour end and the log have it."""
        self.clock.advance(closes_at(hour_at(self.clock.time())) - self.clock.time())
        assert self.money.evidence is not None
        await self.money.evidence.log.close_hours()

    async def read_sizes(self) -> dict[str, int]:
        """The bytes of every table with its indexes, by the table's name; pages that are not full count in part."""
        sql = """SELECT m.tbl_name, sum(d.payload + 12 * d.ncell) FROM dbstat d JOIN sqlite_schema m ON m.name = d.name
          GROUP BY 1"""
        return dict(await self.money.own.file.read(lambda db: db.execute(sql).fetchall()))  # type: ignore[attr-defined]


def call(tool: str, arguments: Any = None, id: Any = 1, **meta: Any) -> dict[str, Any]:
    """A `tools/call` message; with None for an id a notification."""
    params = {"name": tool, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
    return {"jsonrpc": "2.0", "method": "tools/call", "params": params} | ({} if id is None else {"id": id})


def find_answers(body: bytes) -> list[dict[str, Any]]:
    """The premium answers in a body, wherever they stand in it. A cut body is an empty answer of unknown content."""
    if b"generated_at" not in body or b"/api/pro/" not in body or body.startswith(b"<!"):  # a page has its example
        return []
    try:
        return list(_walk(json.loads(body)))
    except ValueError:
        return [{"endpoint": "/api/pro/?", "cut": body.decode(errors="replace")}]


def _walk(value: Any) -> Any:
    if isinstance(value, dict):
        if str(value.get("endpoint", "")).startswith("/api/pro/") and "generated_at" in value:
            yield value
        for name, each in value.items():
            if name != "content":  # the same once more, as text
                yield from _walk(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each)


def is_worth_something(answer: dict[str, Any]) -> bool:
    """Whether an answer holds anything of what is sold."""

    def holds(value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(holds, value.values()))
        return any(map(holds, value)) if isinstance(value, list) else value is not None

    return any(holds(value) for name, value in answer.items() if name not in FRAME)


def list_sold(heard: list[Heard], *, once: bool = False) -> list[str]:
    """What is sold in these answers, each as a hash; with `once`, the same answer counts once however often it came."""
    found = [answer for each in heard for answer in find_answers(each.body) if is_worth_something(answer)]
    for answer in found:
        answer.pop("_meta", None)
    names = [hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest() for answer in found]
    return sorted(set(names)) if once else names


def list_premium() -> list[Operation]:
    """The tools that cost credits."""
    return [operation for operation in all_tools() if operation.tier is Tier.PREMIUM]


@asynccontextmanager
async def paid_shop(folder: Path) -> AsyncIterator[PaidShop]:
    """The running service. RICH has an allowance, CHILD; POOR has nothing, and GONE is revoked."""
    clock = CallClock(START + timedelta(days=3, seconds=1234))  # another time than that of the examples
    upstreams, via = Upstreams(clock), UpstreamSettings(via=VIA)
    async with AsyncExitStack() as stack:
        open_ = stack.enter_async_context
        chain = await open_(payable_chain(still=clock.time()))
        x402 = X402Settings(enabled=True, facilitator_url=f"{chain.url}/x402", pay_to=f"0x{PAY_TO.hex()}")
        settings = Settings(data_dir=folder, upstream=via, x402=x402)
        money = await open_(open_money(settings, clock=clock, base_url=FACTS.base_url, service=FACTS.source))
        for token, credits in ((RICH, FUNDS), (POOR, 1), (GONE, 100)):
            await money.own.mint(token, credits, cause=f"test {token[-1]}")
        await money.own.charge("call_of_the_poor", POOR, 1, endpoint="/x")
        await money.own.revoke(token_hash(GONE).hex()[:16], "test")
        await money.own.create_allowance(RICH, token_hash(CHILD).hex(), AllowanceTerms("robot", CAP))
        parts: dict[str, Any] = {"money": money, "facts": FACTS, "data_dir": folder, "upstream": via}
        parts["webhooks"] = WebhookSettings(allow_loopback=True)
        e = await open_(engine(all_tools(), internet=upstreams, clock=clock, limits=True, **parts))
        app = RequestGate(e.service.web_app(), FACTS)
        client = await open_(client_of(app, FACTS.base_url, peer="192.0.2.1"))
        inbox = stack.enter_context(closing(Inbox()))
        yield PaidShop(app, client, money, clock, upstreams, chain, inbox)


async def stay() -> dict[str, Any]:
    """A client that waits for its answer."""
    await anyio.sleep_forever()
    raise AssertionError
