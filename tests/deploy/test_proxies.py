"""The files of deploy/ for nginx and Caddy, as they are but for names and ports, in front of a running service."""

import itertools
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.deploy.proxies import DEPLOY, PROXIES, TRUSTED, caddy_command, find_proxy, proxied, running
from tests.live.processes import Program, started
from tests.ports import reserve_port

CLIENTS = itertools.count(1)  # two that nobody was before, for each proxy: all come to one service
pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The demo behind a proxy that it trusts."""
    folder = tmp_path_factory.mktemp("behind")
    with started("demo", "--limits", folder=folder, **TRUSTED) as program:
        yield program


def require(name: str) -> None:
    if find_proxy(name) is None:
        pytest.skip(f"{name} is not here")


@pytest.fixture(params=PROXIES)
def address(request: pytest.FixtureRequest, service: Program, tmp_path: Path) -> Iterator[tuple[str, ssl.SSLContext]]:
    """The https address of a proxy in front of the service, and the authority that signed its certificate."""
    require(request.param)
    with proxied(request.param, service.url.removeprefix("http://"), tmp_path) as proxy:
        yield proxy.url, proxy.authority


def test_clients_speak_http2_to_the_proxy_and_each_is_who_the_proxy_saw(address):
    """Both come by 127.0.0.1 to the service, which spaces the calls of each client."""
    url, authority = address
    one, other = f"127.0.{next(CLIENTS)}.1", f"127.0.{next(CLIENTS)}.1"
    for client, expected in ((one, 200), (one, 429), (other, 200)):
        transport = httpx.HTTPTransport(http2=True, verify=authority, local_address=client)
        with httpx.Client(transport=transport, trust_env=False, timeout=30) as asking:
            answer = asking.get(f"{url}/api/btc-price")
            assert (answer.status_code, answer.http_version) == (expected, "HTTP/2")
            if expected == 200:
                assert answer.json()["data"]["price_usd"] > 0


def test_the_proxy_compresses_nothing_again_and_passes_what_is_compressed(address):
    url, authority = address
    with httpx.Client(verify=authority, trust_env=False, timeout=30) as client:
        for encoding in ("br", "zstd", "gzip"):
            answer = client.get(f"{url}/openapi.json", headers={"accept-encoding": encoding})
            assert answer.headers["content-encoding"] == encoding
            assert answer.json()["openapi"].startswith("3.1")


def test_a_body_that_is_too_large_is_refused_in_our_words_or_the_proxys_and_the_next_call_is_answered(address):
    url, authority = address
    with httpx.Client(verify=authority, trust_env=False, timeout=30) as client:
        assert client.post(f"{url}/api/mcp", content=b"x" * 2_000_000).status_code == 413
        assert client.get(f"{url}/api/health").status_code == 200


def test_of_three_instances_one_that_is_gone_is_not_noticed(service, tmp_path):
    """The Caddyfile of compose.yaml, with a port where nothing listens in place of one instance."""
    require("caddy")
    port, behind = reserve_port(), service.url.removeprefix("http://")
    instances = f"{behind} 127.0.0.1:{reserve_port()} {behind}"
    changes = {"one:8080 two:8080 three:8080": instances, "{$SITE}": f"http://127.0.0.1:{port}"}
    command = caddy_command(tmp_path, (DEPLOY / "Caddyfile.compose").read_text(), changes)
    with running(command, tmp_path, port), httpx.Client(trust_env=False, timeout=30) as client:
        assert [client.get(f"http://127.0.0.1:{port}/api/health").status_code for _ in range(20)] == [200] * 20
