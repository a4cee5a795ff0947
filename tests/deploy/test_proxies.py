"""The files of deploy/ for nginx and Caddy, as they are but for names and ports, in front of a running service."""

import itertools
import signal
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.deploy.proxies import DEPLOY, PROXIES, TRUSTED, balanced, caddy_command, find_proxy, proxied, running
from tests.live.processes import UNLIMITED, Program, started
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


@pytest.mark.parametrize("proxy", PROXIES)
def test_of_three_instances_one_that_is_stopped_costs_no_caller_an_answer(proxy, tmp_path):
    """The shipped files for several instances, which are asked all the time while one after the other is stopped."""
    require(proxy)
    ended, answers = threading.Event(), Counter()
    with ExitStack() as stack:
        folders = [tmp_path / str(number) for number in range(3)]
        for folder in folders:
            folder.mkdir()
        drain = TRUSTED | UNLIMITED | {"TOOLSERVER_SERVING__DRAIN_S": "3"}
        instances = [stack.enter_context(started("serve", folder=folder, **drain)) for folder in folders]
        front = stack.enter_context(balanced(proxy, [one.url.removeprefix("http://") for one in instances], tmp_path))

        def ask(path):
            with httpx.Client(verify=front.authority, trust_env=False, timeout=30) as client:
                while not ended.is_set():
                    try:
                        answer = client.get(f"{front.url}{path}")
                        answers[answer.status_code if answer.json() else "empty"] += 1
                    except (httpx.HTTPError, ValueError) as error:
                        answers[repr(error)] += 1

        paths = ("/livez", "/api/llm-tools")
        askers = [threading.Thread(target=ask, args=(path,)) for path in paths]
        for asker in askers:
            asker.start()
        try:
            statuses = [one.stop() for one in instances[:2]]
        finally:
            ended.set()
            for asker in askers:
                asker.join()
    assert statuses == [0, 0]
    assert answers.keys() == {200}
    assert answers[200] > 100


@pytest.mark.parametrize("server", ["hypercorn", "uvicorn"])
def test_an_instance_that_drains_says_so_and_answers_each_call_as_the_last_on_its_connection(server, tmp_path):
    with started("serve", "--server", server, folder=tmp_path, TOOLSERVER_SERVING__DRAIN_S="1.5", **UNLIMITED) as one:
        with httpx.Client(base_url=one.url, trust_env=False, timeout=10) as client:
            assert client.get("/readyz").status_code == 200
            one.process.send_signal(signal.SIGTERM)
            while (ready := client.get("/readyz")).status_code == 200:
                pass
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert client.get("/livez").json() == {"live": True}
            assert client.get("/healthz/ledger").status_code == 503
            called = client.get("/api/health")
            assert (called.status_code, called.headers["connection"]) == (200, "close")
            assert one.process.wait(15) == 0
            with pytest.raises(httpx.ConnectError):
                client.get("/readyz")
