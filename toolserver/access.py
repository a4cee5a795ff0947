"""Who is calling: an address or a token, and through which door."""

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

TOKEN = re.compile(r"svc_live_[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Caller:
    """One call's origin. `client` is what limits count by; `limited` is False for the owner's own doors."""

    client: str
    token: str | None = field(default=None, repr=False)
    agent: str = ""
    door: str = "rest"
    limited: bool = True
    request_id: str = ""
    idempotency_key: str | None = field(default=None, repr=False)
    nonce: str | None = None
    payment: str | None = field(default=None, repr=False)  # x402: the header's value, or the JSON object of MCP


def token_hash(token: str) -> bytes:
    """What is stored instead of a token: tokens are 256 random bits, so one plain SHA-256 is enough."""
    return hashlib.sha256(token.encode()).digest()


def bearer(header: str | None) -> str | None:
    """The token of an Authorization header, or None when there is no bearer. Any spelling of the scheme."""
    if not header:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def well_formed(token: str) -> bool:
    return TOKEN.fullmatch(token) is not None


class Addresses:
    """From a socket's peer and X-Forwarded-For to the address that limits count by."""

    def __init__(self, trusted_proxies: Iterable[str]) -> None:
        self._trusted = [ipaddress.ip_network(p, strict=False) for p in trusted_proxies]
        self._known: dict[str, str] = {}

    def client(self, peer: str, forwarded: str | None = None) -> str:
        """IPv4 as it is, IPv6 by /64. The header counts from trusted proxies only, read from the right."""
        if forwarded is not None and self._trusted and self._is_trusted(peer):
            for hop in reversed([h.strip() for h in forwarded.split(",")]):
                peer = hop
                if not self._is_trusted(hop):
                    break
        name = self._known.get(peer)
        if name is None:
            name = _by_network(peer)
            if len(self._known) < 4096:
                self._known[peer] = name
        return name

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._trusted)


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
