"""Which requests the shipped files for several instances give to another one, when one dies with a request in hand.

The instances are stand-ins. All but the one that is `well` read a whole request and close the connection, or take no
connection at all.
"""

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.proxies import DEPLOY, PROXIES, REPEATS, balanced, caddy_version, find_proxy
from tests.ports import reserve_port
from toolserver.mcp import messages
from toolserver.registry.registry import Registry, Tier

pytestmark = pytest.mark.live
MODERN = {"mcp-protocol-version": messages.MODERN}
KEY = {"idempotency-key": "a-key-that-nobody-can-guess"}
BODY = b'{"a": 1}'
AGAIN = {
    "a free call": ("GET", "/api/btc-price", {}),
    "a paid call": ("GET", "/api/pro/macro", {}),
    "a free POST": ("POST", "/api/receipt/verify", {}),
    "a purchase with a key": ("POST", "/api/payment/buy-credits", KEY),
    "a free call over MCP": ("POST", "/api/mcp", MODERN | {"mcp-method": "tools/call", "mcp-name": "btc_price"}),
    "the list of tools": ("POST", "/api/mcp?tools=weather", MODERN | {"mcp-method": "tools/list"}),
    "a resource": ("POST", "/api/mcp", MODERN | {"mcp-method": "resources/read", "mcp-name": "docs://billing"}),
}
ONCE = {
    "a purchase": ("POST", "/api/payment/buy-credits", {}),
    "a paid call over MCP": ("POST", "/api/mcp", MODERN | {"mcp-method": "tools/call", "mcp-name": "premium_macro"}),
    "a header that MCP does not read": (
        "POST", "/api/mcp", KEY | MODERN | {"mcp-method": "tools/call", "mcp-name": "premium_macro"},
    ),
    "a name that only begins so": (
        "POST", "/api/mcp", MODERN | {"mcp-method": "tools/call", "mcp-name": "gas_premium"},
    ),
    "a call of an older protocol": ("POST", "/api/mcp", {"mcp-method": "tools/call", "mcp-name": "btc_price"}),
    "a call without headers, which may be a paid one": ("POST", "/api/mcp", {}),
    "the version before": ("POST", "/api/mcp", {"mcp-protocol-version": "2025-11-25"}),
    "a session of an older protocol": ("POST", "/api/mcp", {"mcp-session-id": "1"}),
}  # fmt: skip


class StandIn(socketserver.ThreadingTCPServer):
    """Counts the whole requests that come, in a list which several share."""

    daemon_threads = True

    def __init__(self, came: list[str], *, is_well: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.came, self.is_well = came, is_well

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Request(socketserver.StreamRequestHandler):
    server: StandIn

    def handle(self) -> None:
        head = b"".join(iter(self.rfile.readline, b"\r\n")).decode()
        length = re.search(r"(?i)^content-length: (\d+)", head, re.MULTILINE)
        is_whole = length is None or len(self.rfile.read(int(length[1]))) == int(length[1])
        is_probe = head.startswith("GET /readyz ")
        if is_whole and head and not is_probe:
            self.server.came.append(head.split()[0])
        if self.server.is_well or is_probe:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def dying(proxy: str, folder: Path, *, well: int, gone: int = 0) -> Iterator[tuple[httpx.Client, list[str]]]:
    """A client of a proxy before three stand-ins, and the requests that they got.

    The first `well` of them answer, and in the places of the last `gone` nobody listens.
    """
    came: list[str] = []
    with ExitStack() as stack:
        servers = [stack.enter_context(StandIn(came, is_well=number < well)) for number in range(3 - gone)]
        for server in servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            stack.callback(server.shutdown)
        places = [server.place for server in servers] + [f"127.0.0.1:{reserve_port()}" for _ in range(gone)]
        front = stack.enter_context(balanced(proxy, places, folder))
        about: dict[str, Any] = {"base_url": front.url, "verify": front.authority, "trust_env": False, "timeout": 20}
        yield stack.enter_context(httpx.Client(**about)), came


def require(proxy: str) -> None:
    if find_proxy(proxy) is None:
        pytest.skip(f"{proxy} is not here")


@pytest.mark.parametrize("proxy", PROXIES)
def test_what_does_no_harm_twice_is_answered_by_an_instance_that_lives(proxy, tmp_path):
    require(proxy)
    repeats_bodies = proxy != "caddy" or caddy_version() >= REPEATS  # an older Caddy has lost the body: 502
    with dying(proxy, tmp_path, well=1) as (client, came):
        for kind, (method, path, headers) in AGAIN.items():
            answers = [
                client.request(method, path, headers=headers, content=BODY if method == "POST" else None)
                for _ in range(3)
            ]
            may_end_with = {200} if repeats_bodies or method == "GET" else {200, 502}
            assert {answer.status_code for answer in answers} <= may_end_with, kind
    assert len(came) > 3 * len(AGAIN)  # some came to an instance that died


@pytest.mark.parametrize("proxy", PROXIES)
def test_what_might_happen_twice_is_sent_once(proxy, tmp_path):
    require(proxy)
    with dying(proxy, tmp_path, well=0) as (client, came):
        for kind, (method, path, headers) in ONCE.items():
            came.clear()
            assert client.request(method, path, headers=headers, content=BODY).status_code in (502, 503), kind
            assert len(came) <= 1, kind


@pytest.mark.parametrize("proxy", PROXIES)
def test_what_no_instance_has_taken_yet_goes_to_another_one_whatever_it_is(proxy, tmp_path):
    require(proxy)
    with dying(proxy, tmp_path, well=1, gone=2) as (client, came):
        for kind, (method, path, headers) in (AGAIN | ONCE).items():
            came.clear()
            for _ in range(3):  # one of them would go to each
                content = BODY if method == "POST" else None
                assert client.request(method, path, headers=headers, content=content).status_code == 200, kind
            assert len(came) == 3, kind


def test_the_files_name_every_free_tool_and_no_other():
    free = sorted(tool.name for tool in Registry.load("tools") if tool.tier is Tier.FREE)
    for file in ("Caddyfile.compose", "nginx.instances.conf"):
        named = re.findall(r"\((ai_stats\|[\w|]+)\)\$", (DEPLOY / file).read_text())
        assert [each.split("|") for each in named] == [free], file
