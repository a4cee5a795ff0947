"""Decides how requests leave this machine: through which proxy, and which certificate authorities are trusted.

The setting `upstream.proxy` applies to sources, RPC servers, the facilitator, and a service
that is bridged to; without it the usual variables of the environment do: HTTPS_PROXY,
HTTP_PROXY, ALL_PROXY and NO_PROXY, in lower or upper case. An https URL is requested through a
tunnel (CONNECT). Requests to this machine itself never go through a proxy. Requests to
addresses that others name, such as webhooks, ignore all of this: see `webhooks/egress`.
"""

import importlib.util
import os
import ssl
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from toolserver.core.exchange import Outlet, ThroughHttpx
from toolserver.core.public_address import is_local_host
from toolserver.errors import ToolserverError

if TYPE_CHECKING:
    from toolserver.core.http_library import httpx

DIRECT = "direct"  # the value of `upstream.proxy` with which the environment is ignored
SETTING = "upstream.proxy"
_PORTS = {"https": 443, "http": 80}


class ProxyUnusable(ToolserverError, ValueError):
    """The address of a proxy cannot be used. The text names the setting or variable, but never the address."""


class Proxy(NamedTuple):
    """A proxy, which may include a user name and password, and the setting or variable that names it."""

    address: str
    named_by: str

    @property
    def place(self) -> str:
        """Scheme, host and port, for people: without the password."""
        parts = urlsplit(self.address)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"

    @property
    def is_socks(self) -> bool:
        return self.address.startswith("socks")


class Proxies:
    """Finds the proxy of a URL. `by_scheme` has the proxies by the URL's scheme, `exempt` the hosts reached directly.

    `exempt` is written as in NO_PROXY: host names, which include their subdomains, addresses,
    networks (10.0.0.0/8), each with a port if wanted, or `*` for all, separated by commas.
    """

    def __init__(self, by_scheme: Mapping[str, Proxy] | None = None, exempt: str = "") -> None:
        self._by_scheme = by_scheme or {}
        self._exempt = [entry for each in exempt.replace(",", " ").split() if (entry := each.lower())]

    def find(self, url: str) -> Proxy | None:
        """Return the proxy through which a URL is requested, or None if it is requested directly."""
        parts = urlsplit(url)
        proxy, host = self._by_scheme.get(parts.scheme), (parts.hostname or "").rstrip(".")
        if proxy is None or is_local_host(host):
            return None
        port = parts.port or _PORTS.get(parts.scheme)
        return None if any(_covers(entry, host, port) for entry in self._exempt) else proxy

    def list_all(self) -> list[Proxy]:
        """Return every proxy that some request may go through."""
        return list(dict.fromkeys(self._by_scheme.values()))


NO_PROXIES = Proxies()


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Return True if an entry of NO_PROXY names a host, a domain above it, or a network with its address."""
    if entry == "*":
        return True
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    try:
        address = ip_address(host)
    except ValueError:
        name = entry.removeprefix("*").strip(".")
        return bool(name) and (host == name or host.endswith("." + name))
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:
        return False


def read_proxies(setting: str | None, environment: Mapping[str, str] = os.environ) -> Proxies:
    """Return the proxies that the setting names, or else the environment. NO_PROXY applies to both.

    Raises:
        ProxyUnusable: an address is none of a proxy, or is SOCKS and the extra is not installed.
    """
    exempt = _read(environment, "no_proxy")[0]
    if setting == DIRECT:
        return NO_PROXIES
    if setting:
        proxy = _make_proxy(setting, SETTING)
        return Proxies({"http": proxy, "https": proxy}, exempt)
    by_scheme = {}
    for scheme in ("http", "https"):
        address, spelling = _read_proxy(environment, scheme)
        if address:
            by_scheme[scheme] = _make_proxy(address, spelling)
    return Proxies(by_scheme, exempt)


def names_proxy(scheme: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the environment names a proxy for URLs of this scheme, usable or not."""
    return bool(_read_proxy(environment, scheme)[0])


def _read_proxy(environment: Mapping[str, str], scheme: str) -> tuple[str, str]:
    """Return the proxy for a scheme and the spelling of its variable; an empty one if there is none."""
    own = _read(environment, f"{scheme}_proxy")
    return own if own[0] else _read(environment, "all_proxy")


def _read(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return a variable's value and the spelling in which it is set. Lower case takes precedence, as in curl."""
    for spelling in (name, name.upper()):
        if value := environment.get(spelling, "").strip():
            return value, spelling
    return "", name.upper()


def _make_proxy(address: str, named_by: str) -> Proxy:
    try:
        proxy = Proxy(normalize_proxy(address), named_by)
    except ValueError as error:
        raise ProxyUnusable(f"{named_by} {error}") from None
    if proxy.is_socks and importlib.util.find_spec("socksio") is None:
        raise ProxyUnusable(f"{named_by} is a SOCKS proxy, which needs the extra 'socks' (agent-toolserver[socks])")
    return proxy


def normalize_proxy(address: str) -> str:
    """Return the address of a proxy as a URL; one without a scheme is an http proxy, as in curl.

    Raises:
        ValueError: it is not the address of a proxy. The message does not repeat it, because it may have a password.
    """
    url = (address if "://" in address else f"http://{address}").rstrip("/")
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(f"{scheme.lower()}://{rest}")
        is_whole = bool(parts.hostname) and not (parts.path or parts.query or parts.fragment) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or scheme.lower() not in ("http", "https", "socks5", "socks5h"):
        raise ValueError("must be http://[user:password@]host:port; https, socks5 and socks5h are known too")
    return f"{scheme.lower()}://{rest}"


def make_tls_context() -> ssl.SSLContext:
    """Return what TLS connections are verified with: SSL_CERT_FILE, SSL_CERT_DIR, and the system's authorities.

    OpenSSL reads both variables itself, each in place of the system's own file or folder.
    Where there is neither, as on macOS or in a bare image, the public authorities of certifi
    are used.
    """
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not _has_folder():
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def make_public_tls_context() -> ssl.SSLContext:
    """Return a context that trusts the public authorities alone, those that browsers trust, wherever it runs."""
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _has_folder() -> bool:
    """Return True if OpenSSL looks authorities up in a folder, from which it loads each only when it is needed."""
    folder = ssl.get_default_verify_paths().capath
    return folder is not None and any(Path(folder).iterdir())


def make_client(
    url: str,
    proxies: Proxies = NO_PROXIES,
    *,
    transport: "httpx.AsyncBaseTransport | None" = None,
    headers: Mapping[str, str] | None = None,
    connections: int = 100,
    kept_s: float = 5.0,
) -> "httpx.AsyncClient":
    """Return an HTTP client for one service, which follows no redirect. The caller bounds each request's time.

    A `transport` replaces the network. At most `connections` are open at once, and an idle one is kept for `kept_s`.
    """
    from http.cookiejar import CookieJar, DefaultCookiePolicy  # httpx loads it too, where a client is needed

    from toolserver.core.http_library import httpx

    tls = make_tls_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # one caller's would go along for another caller
    return httpx.AsyncClient(
        base_url=url,
        headers=headers,
        transport=transport or make_transport(url, proxies, tls, connections=connections, kept_s=kept_s),
        follow_redirects=False,
        timeout=None,
        trust_env=False,
        cookies=no_cookies,
    )


def make_transport(
    url: str,
    proxies: Proxies,
    tls: ssl.SSLContext,
    *,
    connections: int,
    kept_s: float,
    http2: bool = False,
    http2_hosts: set[str] | None = None,
) -> "httpx.AsyncBaseTransport":
    """Return a pool of connections to the host of a URL, through its proxy if it has one.

    Every request to a source, the facilitator or a bridged service goes through such a pool,
    so the library of HTTP clients can be exchanged here. At most `connections` are open at
    once, and an idle one is kept for `kept_s`. With `http2`, hosts may choose HTTP/2;
    `http2_hosts` remembers those that did.
    """
    from toolserver.core.direct_pool import DirectPool
    from toolserver.core.http_library import httpx
    from toolserver.core.httpx_pool import HttpxPool

    proxy = proxies.find(url)

    def make_pool() -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=tls,
            http2=http2,
            limits=httpx.Limits(
                max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=kept_s
            ),
            trust_env=False,
            proxy=None if proxy is None else httpx.Proxy(proxy.address, ssl_context=_tls_of(proxy)),
        )

    if proxy is not None:
        return HttpxPool(make_pool)
    make_http2 = (lambda: HttpxPool(make_pool)) if http2 else None
    return DirectPool(url, tls, most=connections, kept_s=kept_s, make_http2=make_http2, http2_hosts=http2_hosts)


def as_outlet(transport: "httpx.AsyncBaseTransport") -> Outlet:
    """Return what sends requests through a transport, without the other objects of httpx where it can."""
    from toolserver.core.direct_pool import DirectPool

    return transport if isinstance(transport, DirectPool) else ThroughHttpx(transport)


def _tls_of(proxy: Proxy) -> ssl.SSLContext | None:
    return make_tls_context() if proxy.address.startswith("https:") else None
