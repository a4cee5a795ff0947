"""The caller of a tool: its address or token, and the transport it uses."""

import functools
import hashlib
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

TOKEN = re.compile(r"svc_live_[0-9a-f]{64}")
_SECRET = re.compile(r"(svc_[a-z]+_)([0-9a-f]{16,})")
REFERENCE = "reference"  # what `Prefer: receipt=` and MCP's `_meta.receipt` ask for where the id is enough


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of one call. Limits count by `client`; `limited` is False for the owner's own transports.

    `short_meta` says that the answer shall have little in its `_meta`, `receipt_reference` that a paid answer
    shall name its receipt and not carry it.
    """

    client: str
    token: str | None = field(default=None, repr=False)
    agent: str = ""
    transport: str = "rest"
    limited: bool = True
    request_id: str = ""
    idempotency_key: str | None = field(default=None, repr=False)
    nonce: str | None = None
    short_meta: bool = False
    receipt_reference: bool = False
    payment: str | None = field(default=None, repr=False)  # x402: the header's value, or the JSON object of MCP


def token_hash(token: str) -> bytes:
    """Return the SHA-256 that is stored instead of a token. Tokens are 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()


def bearer(header: str | None) -> str | None:
    """Return the bearer token of an Authorization header; None without one. The scheme is matched in any case.

    A header that holds no bearer token is returned as it is: no such token exists, so it is refused as invalid.
    """
    if not header:
        return None
    scheme, _, token = header.partition(" ")
    return (token.strip() if scheme.lower() == "bearer" else "") or header


def mask_secrets(text: str) -> str:
    """A text of the same length in which no token, memo or code can be read, wherever one was put by mistake."""
    return _SECRET.sub(lambda found: found[1] + "x" * len(found[2]), text) if "svc_" in text else text


def well_formed(token: str) -> bool:
    return TOKEN.fullmatch(token) is not None


class Addresses:
    """Derives the address that limits count by from the socket's peer and X-Forwarded-For."""

    def __init__(self, trusted_proxies: Iterable[str], note_untrusted: Callable[[str], None] | None = None) -> None:
        """`note_untrusted` gets the peer of each request whose header is not believed."""
        self._trusted = [ipaddress.ip_network(p, strict=False) for p in trusted_proxies]
        self._note_untrusted = note_untrusted
        self._known: dict[str, str] = {}

    def client(self, peer: str, forwarded: str | None = None) -> str:
        """Return an IPv4 address, or the /64 of an IPv6 address. The header, read from the right, is
        believed only when a trusted proxy sent it."""
        if forwarded is not None:
            if self._trusted and self.is_trusted(peer):
                for hop in reversed(forwarded.split(",")):
                    peer = _without_port(hop.strip())
                    if not self.is_trusted(peer):
                        break
            elif self._note_untrusted is not None:
                self._note_untrusted(peer)
        name = self._known.get(peer)
        if name is None:
            name = _by_network(peer)
            if len(self._known) < 4096:
                self._known[peer] = name
        return name

    def is_trusted(self, address: str) -> bool:
        """Whether an address is in a network of trusted proxies."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._trusted)


def wider_network(client: str) -> str | None:
    """Return the /48 of a client that is an IPv6 /64, of which a /48 holds 65,536. None for other clients."""
    return _find_wider_network(client) if client.endswith("/64") else None


@functools.lru_cache(4096)
def _find_wider_network(network: str) -> str:
    return str(ipaddress.IPv6Network(network).supernet(new_prefix=48))


def _without_port(address: str) -> str:
    """`192.0.2.1:5678` and `[2001:db8::1]:80` without what is not the address; some proxies add the client's port."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _by_network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if parsed.version == 6:
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
