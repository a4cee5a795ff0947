"""Find out why no source can be reached, for `doctor`: each cause with its next step in a sentence.

A host is visited as a source is, step by step: its name, a connection to it or to the proxy,
the tunnel, TLS, and one request. The step that fails names the cause. RPC servers are visited
too, to find those that count as one.
"""

import base64
import email.utils
import socket
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from toolserver import __version__
from toolserver.core.outbound import Proxies, Proxy, make_public_tls_context, make_tls_context

WITHIN_S = 3.0  # for each step
CLOCK_OFF_S = 300.0  # the difference from which requests and certificates fail, or soon will
MOST_HEAD = 16_384
NOT_YET_VALID, EXPIRED, WRONG_NAME = 9, 10, 62  # X509_V_ERR_…

Cause = Literal[
    "no_dns",
    "not_connected",
    "proxy_unreachable",
    "proxy_refuses",
    "unknown_authority",
    "captive_portal",
    "clock_wrong",
]


class NetworkFinding(NamedTuple):
    """Why a host was not reached. `said` names the next step."""

    cause: Cause
    said: str


def find_cause(hosts: Sequence[str], proxies: Proxies, now: Callable[[], datetime]) -> NetworkFinding | None:
    """Return why none of these hosts can be reached, as the first of them shows, or None if one can. Blocks."""
    findings = []
    for host in hosts:
        finding = visit(host, proxies, now)
        if finding is None:
            return None
        findings.append(finding)
    return findings[0] if findings else None


def visit(
    host: str, proxies: Proxies, now: Callable[[], datetime], port: int = 443, tls: ssl.SSLContext | None = None
) -> NetworkFinding | None:
    """Request one page of a host over TLS. Return what prevented it, or None. Blocks."""
    proxy = proxies.find(f"https://{host}:{port}/")
    try:
        connection = _connect(host, port) if proxy is None else _connect_by(proxy, host, port)
    except _Failed as failed:
        return (_find_portal(host) if proxy is None else None) or failed.finding
    with connection:
        try:
            with (tls or make_tls_context()).wrap_socket(connection, server_hostname=host) as encrypted:
                head = _request(encrypted, host)
        except ssl.SSLCertVerificationError as error:
            return (_find_portal(host) if proxy is None else None) or _judge_certificate(host, error)
        except (ssl.SSLError, ConnectionError, EOFError):
            said = (
                f"What answers for {host} does not speak TLS: this network wants a sign-in first, or filters traffic."
            )
            return NetworkFinding("captive_portal", f"{said} Sign in with a browser, or ask who runs the network.")
        except OSError:
            return _not_connected(host, "does not answer")
    return _judge_clock(head, now())


class _Failed(Exception):
    def __init__(self, cause: Cause, said: str) -> None:
        super().__init__(said)
        self.finding = NetworkFinding(cause, said)


def _connect(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), WITHIN_S)
    except socket.gaierror:
        said = f"The name {host} does not resolve. Check the DNS server of this machine (resolv.conf) and its network;"
        raise _Failed("no_dns", f"{said} if only a proxy has access, set upstream.proxy.") from None
    except OSError as error:
        finding = _not_connected(host, "takes too long" if isinstance(error, TimeoutError) else f"fails ({error})")
        raise _Failed(*finding) from None


def _not_connected(host: str, how: str) -> NetworkFinding:
    said = f"The name resolves, but a connection to {host}:443 {how}. Check that this machine is online and that no"
    return NetworkFinding("not_connected", f"{said} firewall blocks it; behind a proxy, set upstream.proxy.")


def _connect_by(proxy: Proxy, host: str, port: int) -> socket.socket:
    parts = urlsplit(proxy.address)
    place = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    try:
        connection = socket.create_connection(place, WITHIN_S)
        if proxy.is_socks:  # its handshake is left to the client; that it is reached is all that is known here
            return connection
        if parts.scheme == "https":
            connection = make_tls_context().wrap_socket(connection, server_hostname=place[0])
        answer = _open_tunnel(connection, proxy, f"{host}:{port}")
    except OSError as error:
        said = f"The proxy {proxy.place} ({proxy.named_by}) cannot be reached: {error}. Check its address and port."
        raise _Failed("proxy_unreachable", said) from None
    status = answer.partition(b" ")[2][:3].decode("ascii", "replace")
    if status == "200":
        return connection
    connection.close()
    said = f"The proxy {proxy.place} ({proxy.named_by}) refuses {host} (status {status or 'none'})."
    if status == "407":
        raise _Failed("proxy_refuses", f"{said} Add its user name and password: http://user:password@host:port.")
    raise _Failed("proxy_refuses", f"{said} Ask who runs it to allow this host, or name it in NO_PROXY.")


def _open_tunnel(connection: socket.socket, proxy: Proxy, authority: str) -> bytes:
    """Ask the proxy for a tunnel, and return the head of its answer."""
    parts = urlsplit(proxy.address)
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return _read_head(connection)


def _request(connection: socket.socket, host: str) -> bytes:
    lines = ["GET / HTTP/1.1", f"Host: {host}", f"User-Agent: toolserver/{__version__}", "Connection: close", "", ""]
    connection.sendall("\r\n".join(lines).encode())
    return _read_head(connection)


def _read_head(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MOST_HEAD:
        piece = connection.recv(4096)
        if not piece:
            break
        head += piece
    return head


def _judge_certificate(host: str, error: ssl.SSLCertVerificationError) -> NetworkFinding:
    if error.verify_code in (NOT_YET_VALID, EXPIRED):
        said = f"The certificate of {host} is {'expired' if error.verify_code == EXPIRED else 'not valid yet'} by this"
        return NetworkFinding("clock_wrong", f"{said} machine's clock. Set the clock, best by NTP.")
    if error.verify_code == WRONG_NAME:
        said = f"Something answers for {host} with the certificate of another name: this network wants a sign-in first,"
        return NetworkFinding("captive_portal", f"{said} or redirects. Sign in with a browser.")
    said = f"The certificate of {host} is from an authority that this machine does not trust ({error.verify_message})."
    return NetworkFinding(
        "unknown_authority",
        f"{said} If your company inspects traffic, set SSL_CERT_FILE to a file with its authority.",
    )


def _judge_clock(head: bytes, now: datetime) -> NetworkFinding | None:
    """Compare this machine's clock with the `Date` of an answer."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"date":
            try:
                date = email.utils.parsedate_to_datetime(value.decode("ascii", "replace").strip())
                off_s = (now - date).total_seconds()
            except (ValueError, TypeError):
                return None
            if abs(off_s) > CLOCK_OFF_S:
                said = (
                    f"This machine's clock is {abs(off_s):.0f} s {'ahead' if off_s > 0 else 'behind'}. Set it, best by"
                )
                return NetworkFinding(
                    "clock_wrong", f"{said} NTP: answers would be called stale, or come from the future."
                )
    return None


def _find_portal(host: str) -> NetworkFinding | None:
    """Return a finding if plain HTTP to the host is answered by another site, as networks with a sign-in page do."""
    try:
        with socket.create_connection((host, 80), WITHIN_S) as connection:
            head = _request(connection, host)
    except OSError:
        return None
    status = head.partition(b" ")[2][:3]
    location = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"location:")), b"")
    target = urlsplit(location.partition(b":")[2].strip().decode("ascii", "replace")).hostname
    site = ".".join(host.split(".")[-2:])
    is_elsewhere = target is not None and target != site and not target.endswith(f".{site}")
    if status != b"511" and not is_elsewhere:
        return None
    said = "This network wants a sign-in first: it answers requests to other hosts itself"
    return NetworkFinding("captive_portal", f"{said}{f' and leads to {target}' if target else ''}. Open that page.")


class SharedServers(NamedTuple):
    """How many RPC servers count separately, and what those share that do not."""

    apart: int
    shares: tuple[str, ...]


def judge_servers(urls: Sequence[str], proxies: Proxies, now: Callable[[], datetime]) -> SharedServers:
    """Find RPC servers that count as one: behind one proxy, or with a certificate that no public authority issued.

    Those that are reached directly over TLS are connected to. Blocks.
    """
    apart, shared = 0, dict[str, int]()
    for url in urls:
        proxy, parts = proxies.find(url), urlsplit(url)
        if proxy is not None:
            shared[f"the proxy {proxy.place}"] = shared.get(f"the proxy {proxy.place}", 0) + 1
            continue
        is_private = False
        if parts.scheme == "https":
            place = (parts.hostname or "", parts.port or 443)
            finding = visit(place[0], proxies, now, place[1], make_public_tls_context())
            is_private = finding is not None and finding.cause == "unknown_authority"
        if is_private:
            shared["an authority that is not public"] = shared.get("an authority that is not public", 0) + 1
        else:
            apart += 1
    return SharedServers(apart + len(shared), tuple(path for path, count in shared.items() if count > 1))
