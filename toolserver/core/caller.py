"""Identifies the caller of a tool by its address or token and its transport, and names requests and paid calls."""

import functools
import hashlib
import ipaddress
import itertools
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

TOKEN = re.compile(r"svc_live_[0-9a-f]{64}")
PLACEHOLDER = "svc_live_YOUR_TOKEN"
NO_TOKENS = frozenset({PLACEHOLDER, "null", "undefined", "None", "nil"})  # what stands where no token was entered
VISITOR = "svc_free_"  # the beginning of a visitor token, which identifies a caller and is not an account
_SECRET = re.compile(r"(svc_[a-z]+_)([0-9a-f]{16,})")
_MAPPED = bytes(10) + b"\xff\xff"  # the prefix of IPv4 addresses written as IPv6
PEERS, CLIENTS, LONGEST_KEPT = 1024, 16_384, 200  # numbers of cached verdicts, and the longest header that is cached
PAGE = "page"  # the transport of a try on a page
REFERENCE = "reference"  # the value of `Prefer: receipt=` and MCP's `_meta.receipt` that asks only for the id


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of one call. Limits count by `client`; `limited` is False for the owner's own transports and pages.

    `short_meta` asks for a short `_meta` in the answer, `receipt_reference` for a paid answer
    that names its receipt instead of carrying it.
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

    @property
    def waits_as(self) -> str | None:
        """Return whose share of the places to wait its calls take, or None for the owner's own, which have none.

        A page tries a tool without the limits of programs, and yet for a stranger.
        """
        return self.client if self.limited or self.transport == PAGE else None


def token_hash(token: str) -> bytes:
    """Return the SHA-256 that is stored instead of a token. Tokens are 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()


def bearer(header: str | None) -> str | None:
    """Return the bearer token of an Authorization header, or None without one. The scheme's case does not matter.

    A header of another scheme is returned unchanged. It matches no token, so it is refused as invalid.
    """
    if not header or header == PLACEHOLDER:
        return None
    is_bearer = header[:6].lower() == "bearer" and header[6:7] in ("", " ")
    return real_token(header[6:]) if is_bearer else header


def real_token(text: str | None) -> str | None:
    """Return a token as it was entered, or None for what stands where a token was never entered.

    These are an empty text, the placeholder of examples, a variable or a place for one that a
    host or a person left as it was, such as `${env:TOOLSERVER_TOKEN}`, `%TOOLSERVER_TOKEN%` or
    `<token>`, and what programs write for a variable without a value, such as `null`.
    """
    token = (text or "").strip()
    return None if not token or token in NO_TOKENS or token[0] in "$%<{" else token


def mask_secrets(text: str) -> str:
    """Return a text of the same length without tokens, memos and codes that were put into it by mistake."""
    return _SECRET.sub(lambda secret: secret[1] + "x" * len(secret[2]), text) if "svc_" in text else text


def well_formed(token: str) -> bool:
    return TOKEN.fullmatch(token) is not None


def is_visitor_token(token: str | None) -> bool:
    """Return True if this is a visitor token by its beginning, genuine or not."""
    return token is not None and token.startswith(VISITOR)


class Addresses:
    """Derives the address that limits count by from the socket's peer and X-Forwarded-For.

    Results for recent clients are cached, so that a call costs one table lookup.
    """

    def __init__(self, trusted_proxies: Iterable[str], note_untrusted: Callable[[str], None] | None = None) -> None:
        """`note_untrusted` gets the peer of each request whose header is not trusted."""
        self._trusted = [_Network(ipaddress.ip_network(each, strict=False)) for each in trusted_proxies]
        self._note_untrusted = note_untrusted
        self.is_trusted = functools.lru_cache(PEERS)(self._is_trusted)
        self._find_direct = functools.lru_cache(CLIENTS)(_name_client)
        self.find_forwarded = functools.lru_cache(CLIENTS)(self._read_forwarded)

    def client(self, peer: str, forwarded: str | None = None) -> str:
        """Return an IPv4 address, or the /64 of an IPv6 address.

        The header is read from the right, and used only if a trusted proxy sent it.
        """
        if forwarded is None:
            return self._find_direct(peer)
        if not self._trusted or not self.is_trusted(peer):
            if self._note_untrusted is not None:
                self._note_untrusted(peer)
            return self._find_direct(peer)
        return (self.find_forwarded if len(forwarded) <= LONGEST_KEPT else self._read_forwarded)(forwarded)

    def _read_forwarded(self, forwarded: str) -> str:
        """Return the client in a header from a trusted proxy: the last hop that is not itself a trusted proxy."""
        hop = ""
        for written in reversed(forwarded.split(",")):
            hop = _without_port(written.strip())
            if not self.is_trusted(hop):
                break
        return _name_client(hop)

    def _is_trusted(self, address: str) -> bool:
        """Return True if an address is in a network of trusted proxies."""
        packed = _pack_address(address)
        return packed is not None and any(network.holds(packed) for network in self._trusted)


class _Network:
    """A network of addresses, in a form that is compared with the bytes of an address."""

    __slots__ = ("_mask", "_network", "_size")

    def __init__(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> None:
        first, mask = network.network_address.packed, network.netmask.packed
        if first.startswith(_MAPPED) and network.prefixlen >= 8 * len(_MAPPED):
            first, mask = first[len(_MAPPED) :], mask[len(_MAPPED) :]
        self._size, self._network, self._mask = len(first), int.from_bytes(first), int.from_bytes(mask)

    def holds(self, packed: bytes) -> bool:
        return len(packed) == self._size and int.from_bytes(packed) & self._mask == self._network


def wider_network(client: str) -> str | None:
    """Return the /48 of a client that is an IPv6 /64 (a /48 contains 65,536 of them), or None for other clients."""
    return _find_wider_network(client) if client.endswith("/64") else None


def crowd_of(client: str) -> str:
    """Return who counts together with a client where something is shared out: its /48, or the client alone."""
    return wider_network(client) or client


@functools.lru_cache(4096)
def _find_wider_network(network: str) -> str:
    return str(ipaddress.IPv6Network(network).supernet(new_prefix=48))


def _without_port(address: str) -> str:
    """Return the address in `192.0.2.1:5678` or `[2001:db8::1]:80`; some proxies add the client's port."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _pack_address(address: str) -> bytes | None:
    """Return the 4 or 16 bytes of an address without its zone, or None if it is not an address.

    An IPv4 address has 4, also if it is written as IPv6: so a socket for both protocols names its IPv4 peers.
    """
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
        return packed[len(_MAPPED) :] if packed.startswith(_MAPPED) else packed
    except (OSError, ValueError):  # ValueError: a null byte, or a character beyond ASCII
        return None


def _name_client(address: str) -> str:
    """Return an IPv4 address, even if written as IPv6, or the /64 of an IPv6 address, otherwise `unknown`."""
    packed = _pack_address(address.partition("%")[0])
    if packed is None:
        return "unknown"
    if len(packed) == 16:
        return f"{socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))}/64"
    return socket.inet_ntop(socket.AF_INET, packed)


_process = secrets.token_hex(6)
_count = itertools.count(1)
_random: list[str] = []
_CALL_BYTES = 16
_CALL_NAME = re.compile("[0-9a-f]{32}")
_CALL_ID = re.compile("call_([0-9a-f]{12})[0-9a-f]{20}")


def new_request_id() -> str:
    """Return an id that is unique in this process and hard enough to guess for a log, without a system call."""
    return f"req_{_process}{next(_count):010x}"


def new_call_id() -> str:
    """Return an id that names one paid call everywhere: reservation, settlement, receipt.

    It begins with the time in ms, so that calls are stored in the order in which they are
    made, which makes writing a large ledger four times as fast. 80 random bits follow.
    """
    if not _random:
        drawn = secrets.token_bytes(10 * 256)  # one system call for many ids
        _random.extend(drawn[at : at + 10].hex() for at in range(0, len(drawn), 10))
    return f"call_{time.time_ns() // 1_000_000:012x}{_random.pop()}"


def pack_call_name(name: str) -> bytes:
    """Return the name of a call, its id without the prefix, as it is stored: 16 bytes for 32 hex digits, else its text.

    Stored names of our own calls are in the order of their times.
    """
    if _CALL_NAME.fullmatch(name):
        return bytes.fromhex(name)
    text = name.encode()
    return text + b"\0" if len(text) == _CALL_BYTES else text


def unpack_call_name(packed: bytes) -> str:
    """Return the name that was packed."""
    if len(packed) == _CALL_BYTES:
        return packed.hex()
    return packed.removesuffix(b"\0").decode() if len(packed) == _CALL_BYTES + 1 else packed.decode()


def find_call_time(call_id: str) -> int | None:
    """Return the time (epoch ms) with which an id of `new_call_id` begins, or None for an id of another shape."""
    found = _CALL_ID.fullmatch(call_id)
    return None if found is None else int(found[1], 16)


def is_sane_request_id(request_id: str) -> bool:
    """Return True if a caller's own request id may be used unchanged."""
    return 8 <= len(request_id) <= 128 and all(c.isalnum() or c in "-_.:" for c in request_id) and request_id.isascii()
