"""The caller of a tool: its address or token, and the transport it uses."""

import functools
import hashlib
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

TOKEN = re.compile(r"svc_live_[0-9a-f]{64}")
_SECRET = re.compile(r"(svc_[a-z]+_)([0-9a-f]{16,})")
_MAPPED = bytes(10) + b"\xff\xff"  # what IPv4 addresses begin with where they are written as IPv6
PEERS, CLIENTS, LONGEST_KEPT = 1024, 16_384, 200  # verdicts kept, and the longest header that is worth keeping
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
    """Derives the address that limits count by from the socket's peer and X-Forwarded-For.

    What was derived is kept, for those who were last seen, so that a call costs one look into a table.
    """

    def __init__(self, trusted_proxies: Iterable[str], note_untrusted: Callable[[str], None] | None = None) -> None:
        """`note_untrusted` gets the peer of each request whose header is not believed."""
        self._trusted = [_Network(ipaddress.ip_network(each, strict=False)) for each in trusted_proxies]
        self._note_untrusted = note_untrusted
        self.is_trusted = functools.lru_cache(PEERS)(self._is_trusted)
        self._find_direct = functools.lru_cache(CLIENTS)(_name_client)
        self._find_forwarded = functools.lru_cache(CLIENTS)(self._read_forwarded)

    def client(self, peer: str, forwarded: str | None = None) -> str:
        """Return an IPv4 address, or the /64 of an IPv6 address. The header, read from the right, is
        believed only when a trusted proxy sent it."""
        if forwarded is None:
            return self._find_direct(peer)
        if not self._trusted or not self.is_trusted(peer):
            if self._note_untrusted is not None:
                self._note_untrusted(peer)
            return self._find_direct(peer)
        return (self._find_forwarded if len(forwarded) <= LONGEST_KEPT else self._read_forwarded)(forwarded)

    def _read_forwarded(self, forwarded: str) -> str:
        """The client of a header that a trusted proxy sent: the last hop that is no trusted proxy itself."""
        hop = ""
        for written in reversed(forwarded.split(",")):
            hop = _without_port(written.strip())
            if not self.is_trusted(hop):
                break
        return _name_client(hop)

    def _is_trusted(self, address: str) -> bool:
        """Whether an address is in a network of trusted proxies."""
        packed = _pack_address(address)
        return packed is not None and any(network.holds(packed) for network in self._trusted)


class _Network:
    """A network of addresses, as the bytes of an address are compared with it."""

    __slots__ = ("_mask", "_network", "_size")

    def __init__(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> None:
        self._size = len(network.network_address.packed)
        self._network, self._mask = int(network.network_address), int(network.netmask)

    def holds(self, packed: bytes) -> bool:
        return len(packed) == self._size and int.from_bytes(packed) & self._mask == self._network


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


def _pack_address(address: str) -> bytes | None:
    """The 4 or 16 bytes of an address without a zone; None for what is no address."""
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    except (OSError, ValueError):  # ValueError: a null byte, or a character beyond ASCII
        return None


def _name_client(address: str) -> str:
    """An IPv4 address as it is, also where it is written as IPv6; the /64 of an IPv6 address; else `unknown`."""
    packed = _pack_address(address.partition("%")[0])
    if packed is None:
        return "unknown"
    if len(packed) == 16:
        if not packed.startswith(_MAPPED):
            return f"{socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))}/64"
        packed = packed[12:]
    return socket.inet_ntop(socket.AF_INET, packed)
