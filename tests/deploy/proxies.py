"""The files of deploy/ for nginx and Caddy, as they are but for names and ports, as running proxies."""

import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.architecture.code import ROOT
from tests.ports import reserve_port

DEPLOY = ROOT / "deploy"
PROXIES = ("nginx", "caddy")
START_S = 60.0
REPEATS = (2, 8)  # the first Caddy that sends a whole body to a second instance
NGINX_CONNECTIONS = 8192  # nginx's own 512 are for small sites
TRUSTED = {"TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1/32"]'}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy: its port on 127.0.0.1, where it speaks TLS as `localhost`, and who signed its certificate."""

    port: int
    authority: ssl.SSLContext

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


def find_proxy(name: str) -> str | None:
    """Return the path of a program, or None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextmanager
def proxied(
    name: str, behind: str, folder: Path, *, is_careless: bool = False, has_ipv6: bool = False
) -> Iterator[Proxy]:
    """Run nginx or Caddy in front of the service at `behind`, a host with a port, until the block ends.

    A careless one passes on bodies as they come, and does not limit clients, as other files than ours do. Caddy listens
    on every address, and nginx on ::1 too only with `has_ipv6`.
    """
    port, authority = reserve_port(), certify(folder)
    if name == "nginx":
        command = write_nginx(folder, port, behind, is_careless=is_careless, has_ipv6=has_ipv6)
    else:
        command = write_caddy(folder, port, behind, is_careless=is_careless)
    with running(command, folder, port):
        yield Proxy(port, authority)


def certify(folder: Path) -> ssl.SSLContext:
    """Write a certificate for `localhost` and its key into a folder. Return a context that trusts who signed it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    return ssl.create_default_context(cafile=folder / "ca.pem")


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


def write_nginx(folder: Path, port: int, behind: str, *, is_careless: bool, has_ipv6: bool = False) -> list[str]:
    careless = (
        ("proxy_request_buffering on;", "proxy_request_buffering off;"),
        ("    limit_conn toolserver_clients 100;", "    # no limit"),
    )
    changes = [*(careless if is_careless else ()), ("127.0.0.1:8080", behind)]
    return write_nginx_file("nginx.conf", folder, port, changes, has_ipv6=has_ipv6)


def write_nginx_file(
    name: str, folder: Path, port: int, changes: Iterable[tuple[str, str]], *, has_ipv6: bool = False
) -> list[str]:
    """Write a file of ours for nginx with these words, names and port replaced, and return the command to run it."""
    server = (DEPLOY / name).read_text()
    for old, new in (
        *changes,
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        ("    listen [::]:443 ssl http2;\n", f"    listen [::1]:{port} ssl http2;\n" if has_ipv6 else ""),
        ("server_name data.example;", "server_name localhost;"),
        ("/etc/letsencrypt/live/data.example/fullchain.pem", f"{folder}/cert.pem"),
        ("/etc/letsencrypt/live/data.example/privkey.pem", f"{folder}/key.pem"),
    ):
        assert old in server
        server = server.replace(old, new)
    return nginx_command(folder, f"access_log off;\n{server}")


@contextmanager
def balanced(name: str, instances: Sequence[str], folder: Path) -> Iterator[Proxy]:
    """Run nginx or Caddy, with its file for several instances, in front of three, each a host with a port."""
    port, authority = reserve_port(), certify(folder)
    if name == "nginx":
        places = [f"10.0.0.{number}:8080" for number in (1, 2, 3)]
        command = write_nginx_file("nginx.instances.conf", folder, port, list(zip(places, instances, strict=True)))
    else:
        certificates = f"\ttls {folder}/cert.pem {folder}/key.pem\n"
        site = f"https://localhost:{port} {{\n{certificates}"
        changes = {"one:8080 two:8080 three:8080": " ".join(instances), "{$SITE} {\n": site}
        command = caddy_command(folder, (DEPLOY / "Caddyfile.compose").read_text(), changes)
    with running(command, folder, port):
        yield Proxy(port, authority)


def nginx_command(folder: Path, http: str) -> list[str]:
    """Return the words that start nginx with this text for HTTP. What it reads and writes is in the folder."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    own = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
    text = f"{own}\nevents {{ worker_connections {NGINX_CONNECTIONS}; }}\nhttp {{\n{folders}    {http}}}\n"
    (folder / "nginx.conf").write_text(text)
    return [find_program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def write_caddy(folder: Path, port: int, behind: str, *, is_careless: bool) -> list[str]:
    text = (DEPLOY / "Caddyfile").read_text()
    if is_careless:
        assert "\t\trequest_buffers 64KiB\n" in text
        text = text.replace("\t\trequest_buffers 64KiB\n", "")
    certificates = f"\ttls {folder}/cert.pem {folder}/key.pem\n"
    site = f"https://localhost:{port} {{\n{certificates}"
    return caddy_command(folder, text, {"data.example {\n": site, "127.0.0.1:8080": behind})


def caddy_command(folder: Path, text: str, changes: dict[str, str]) -> list[str]:
    """Write a file of ours for Caddy, with some words replaced, and return the command that runs Caddy on it."""
    own = {"{\n\tservers {": "{\n\tadmin off\n\tauto_https off\n\tservers {"}
    if "\trequest_buffers 64KiB" in text and caddy_version() < (2, 7):
        own["request_buffers 64KiB"] = "buffer_requests\n\t\tmax_buffer_size 64KiB"  # as the file says
    for old, new in (own | changes).items():
        assert old in text, f"the file has no {old!r}"
        text = text.replace(old, new)
    (folder / "Caddyfile").write_text(text)
    return [find_program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def caddy_version() -> tuple[int, ...]:
    """Return major and minor version of the installed Caddy."""
    said = subprocess.run([find_program("caddy"), "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    assert found, said
    return int(found[1]), int(found[2])


def find_program(name: str) -> str:
    path = find_proxy(name)
    assert path is not None, f"{name} is not installed"
    return path
