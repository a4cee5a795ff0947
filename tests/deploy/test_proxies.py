"""The files of deploy/ for nginx and Caddy, as they are but for names and ports, in front of a running service."""

import itertools
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from tests.architecture.code import ROOT
from tests.live.processes import Program, started
from tests.ports import reserve_port

DEPLOY = ROOT / "deploy"
START_S = 60.0
CLIENTS = itertools.count(1)  # two that nobody was before, for each proxy: all come to one service
pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The demo behind a proxy that it trusts."""
    folder = tmp_path_factory.mktemp("behind")
    trusted = {"TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1/32"]'}
    with started("demo", folder=folder, **trusted) as program:
        yield program


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return not tried.connect_ex(("127.0.0.1", port))


@contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """A proxy as a process of its own, from when its port answers until the test ends."""
    with open(folder / "proxy.log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={"HOME": str(folder)})
    try:
        deadline = time.monotonic() + START_S
        while not answers(port):
            assert process.poll() is None, (folder / "proxy.log").read_text()
            assert time.monotonic() < deadline, (folder / "proxy.log").read_text()
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{name} is not here")
    return found


@pytest.fixture(params=["nginx", "caddy"])
def address(request: pytest.FixtureRequest, service: Program, tmp_path: Path) -> Iterator[tuple[str, ssl.SSLContext]]:
    """The https address of a proxy in front of the service, and the authority that signed its certificate."""
    port, authority = reserve_port(), trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    behind = service.url.removeprefix("http://")
    write = write_nginx if request.param == "nginx" else write_caddy
    with running(write(tmp_path, port, behind), tmp_path, port):
        yield f"https://localhost:{port}", ssl.create_default_context(cafile=tmp_path / "ca.pem")


def write_nginx(folder: Path, port: int, behind: str) -> list[str]:
    server = (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("127.0.0.1:8080", behind),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        ("    listen [::]:443 ssl http2;\n", ""),
        ("server_name data.example;", "server_name localhost;"),
        ("/etc/letsencrypt/live/data.example/fullchain.pem", f"{folder}/cert.pem"),
        ("/etc/letsencrypt/live/data.example/privkey.pem", f"{folder}/key.pem"),
    ):
        assert old in server
        server = server.replace(old, new)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    text = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\nhttp {{\n"
    (folder / "nginx.conf").write_text(f"{text}    access_log off;\n{folders}{server}}}\n")
    return [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def write_caddy(folder: Path, port: int, behind: str) -> list[str]:
    text = (DEPLOY / "Caddyfile").read_text()
    assert "data.example {" in text
    assert "127.0.0.1:8080" in text
    certificates = f"\ttls {folder}/cert.pem {folder}/key.pem\n"
    text = text.replace("data.example {\n", f"https://localhost:{port} {{\n{certificates}").replace(
        "127.0.0.1:8080", behind
    )
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


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
    port, behind = reserve_port(), service.url.removeprefix("http://")
    text, instances = (DEPLOY / "Caddyfile.compose").read_text(), "one:8080 two:8080 three:8080"
    assert instances in text
    text = text.replace(instances, f"{behind} 127.0.0.1:{reserve_port()} {behind}")
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text.replace("{$SITE}", f"http://127.0.0.1:{port}"))
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    with running(command, tmp_path, port), httpx.Client(trust_env=False, timeout=30) as client:
        assert [client.get(f"http://127.0.0.1:{port}/api/health").status_code for _ in range(20)] == [200] * 20
