"""What a service asks its upstreams for: with `upstream.via` the same, at another address, and answers say so."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.arranged import FACTS
from tests.calls.parts import RICH, START, funded_money
from tests.internet import Internet
from tests.requirements import proves
from tests.served import all_tools
from toolserver.app import Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.settings import LimitSettings, Settings, SourceSettings, UpstreamSettings, WebhookSettings
from toolserver.settings.upstream import KEYS
from toolserver.world.model import World

VIA = "http://127.0.0.1:9999"
SECRETS = {name: f"https://{name.lower()}.example/rpc" if name.endswith("URL") else f"key-of-{name}" for name in KEYS}
PROBED = {"internet_pulse"}
"""Opens connections to hosts and sends no request: without a simulated world it would reach them."""


class Wire(Internet):
    """The simulated world, and what was sent to it, as it left."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(lambda: World(1, clock.time()))
        self.left: list[tuple[str, str, tuple[tuple[str, str], ...], bytes]] = []

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        headers = tuple(sorted((name, value) for name, value in request.headers.items() if name != "host"))
        self.left.append((request.method, str(request.url), headers, request.content))
        if str(request.url).startswith(f"{VIA}/u/"):
            request.url = httpx.URL(str(request.url).replace(f"{VIA}/u/", "https://"))
        return await super()._handle(request)


@dataclass
class Asked:
    """What the tools of a service sent, and what they answered."""

    requests: Counter[tuple[str, str, tuple[tuple[str, str], ...], bytes]] = field(default_factory=Counter)
    simulated: set[bool | None] = field(default_factory=set)


async def run_tools(via: str | None) -> Asked:
    """Call every tool with a source once, on a service whose upstreams are at `via` or at their own addresses."""
    clock, asked = ManualClock(START), Asked()
    wire, money = Wire(clock), funded_money(clock)
    await money.ledger.mint(RICH, 1000, cause="test")
    sources, upstream = SourceSettings(keys=SECRETS), UpstreamSettings(via=via)
    limits, webhooks = LimitSettings(enabled=False), WebhookSettings(enabled=False)
    settings = Settings(data_dir=Path(), upstream=upstream, sources=sources, limits=limits, webhooks=webhooks)
    parts = ServiceParts(
        base_url=FACTS.base_url,
        registry=all_tools(),
        clock=clock,
        transport=wire.transport,
        money=money,
        in_memory=True,
        background=False,
    )
    async with Service.build(settings, parts) as service:
        for operation in all_tools():
            if not operation.sources or operation.name in PROBED or operation.input_schema.get("required"):
                continue
            outcome = await service.pipeline.call(operation, {}, Caller("192.0.2.1", RICH))
            asked.simulated.add(json.loads(outcome.rendered.payload)["_meta"].get("simulated"))
    asked.requests.update(wire.left)
    return asked


@proves("operating.via")
async def test_every_request_of_every_tool_goes_there_with_its_method_headers_and_body_and_answers_say_so():
    direct, there = await run_tools(None), await run_tools(VIA)

    moved = Counter(
        {
            (method, url.replace("https://", f"{VIA}/u/", 1), headers, body): count
            for (method, url, headers, body), count in direct.requests.items()
        }
    )
    assert there.requests == moved
    assert len(moved) > 100
    assert {method for method, *_ in moved} == {"GET", "POST"}
    sent = json.dumps([[dict(headers), url, body.decode()] for _, url, headers, body in moved])
    assert sum(secret in sent for secret in SECRETS.values()) > 5, "keys are sent as they are"
    assert (direct.simulated, there.simulated) == ({None}, {True})
