"""Guard egress: a delivery only ever goes to a public address, whatever its URL says.

The guard checks three times: the URL when it is registered, every address of a name when it is looked up, and the
address that a socket is about to connect to. The last check is the decisive one: aiohttp does not look up literal
addresses, so a guard in the resolver alone would let `127.0.0.1` through.
"""

import socket
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from yarl import URL

from toolserver.core.public_address import is_local_host, is_loopback, is_public
from toolserver.errors import ToolserverError

MOST_URL = 2000
PORTS = (443, 8443)
INTERNAL_NAMES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "home.arpa",
    "consul",
    "onion",
)


class TargetRefused(ToolserverError, OSError):
    """Nothing is sent to this address. `reason` is one word; the text is a sentence for the subscription's owner."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class EgressGuard:
    """Decides where deliveries may go.

    `allow_loopback` is for development: it also allows this machine, at any port and without TLS.
    """

    def __init__(self, *, allow_loopback: bool = False) -> None:
        self._allow_loopback = allow_loopback

    def check_url(self, text: str) -> URL:
        """Return the URL for deliveries as aiohttp reads it. Looks up nothing.

        Raises:
            TargetRefused
        """
        url = _parsed(text)
        host = (url.raw_host or "").removesuffix(".")
        local = self._allow_loopback and is_local_host(host)
        if url.scheme != "https" and not (local and url.scheme == "http"):
            raise TargetRefused("https_required", "The URL must begin with https://.")
        if not local:
            self._check_public(url, host)
        return url

    def _check_public(self, url: URL, host: str) -> None:
        if url.port not in PORTS:
            raise TargetRefused("port_not_allowed", "Deliveries go only to port 443 or 8443.")
        address = _literal(host)
        if address is not None:
            self.check_address(str(address))
        elif _is_internal(host):
            raise TargetRefused("private_or_local_hostname", "The host is not a name of the public Internet.")

    def check_address(self, text: str, port: int | None = None) -> None:
        """Check an address of a name, or one that is about to be connected to. Raises TargetRefused."""
        try:
            address = _read_address(text)
        except ValueError:
            raise TargetRefused("private_address", "The host has an address that cannot be checked.") from None
        if self._allow_loopback and is_loopback(address):
            return
        if not is_public(address):
            raise TargetRefused("private_address", "The host has an address that is not on the public Internet.")
        if port is not None and port not in PORTS:
            raise TargetRefused("port_not_allowed", "Deliveries go only to port 443 or 8443.")

    def check_all(self, addresses: Sequence[str]) -> None:
        """Check every address of a name. Raises TargetRefused if any is not allowed."""
        for address in addresses:
            self.check_address(address)

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Open a socket for an address after checking it, as aiohttp's `socket_factory`. Raises TargetRefused."""
        family, kind, protocol, _, target = info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise TargetRefused("private_address", "Deliveries go only to IP addresses.")
        self.check_address(str(target[0]), int(target[1]))
        if family == socket.AF_INET6 and len(target) > 3 and target[3]:
            raise TargetRefused("private_address", "The host has an address that is not on the public Internet.")
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


def _parsed(text: str) -> URL:
    if len(text) > MOST_URL:
        raise TargetRefused("url_too_long", f"The URL has more than {MOST_URL} characters.")
    if not text.isprintable() or any(c.isspace() or c == "\\" for c in text):
        raise TargetRefused("invalid_url", "The URL contains a character that is not allowed in URLs.")
    try:
        url = URL(text)
        host, _ = url.raw_host, url.port
    except ValueError:
        raise TargetRefused("invalid_url", "This is not a URL.") from None
    if not url.absolute or not host or url.scheme not in ("http", "https"):
        raise TargetRefused("invalid_url", "Give an absolute URL that begins with https://.")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise TargetRefused("invalid_url", "A URL with a user name or password is not accepted; use custom headers.")
    return url.with_fragment(None)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host spells out, or None for a name.

    Raises:
        TargetRefused: a number in another spelling, such as 2130706433, 0x7f.1 or 127.1, or one with a zone.
    """
    try:
        if "%" in host:
            raise TargetRefused("invalid_url", "An address with a zone is not accepted.")
        return ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2].lower()
        if last.isdecimal() or last.startswith("0x") or ":" in host:
            raise TargetRefused("invalid_url", "Write an address in its usual form.") from None
        return None


_read_address = lru_cache(4096)(ip_address)


def _is_internal(host: str) -> bool:
    return "." not in host or any(host == name or host.endswith("." + name) for name in INTERNAL_NAMES)
