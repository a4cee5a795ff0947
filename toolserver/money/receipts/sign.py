"""Builds receipts: signed statements about paid calls.

A receipt is a JWS in compact form (RFC 7515), signed by an Ed25519 key. Its payload, the
*core*, is a JSON object of strings, safe integers, booleans and null, written so that its
bytes are those of RFC 8785 (JCS). The same core is also sent as an object with `signature`
and `key_id`, for people and for verifiers that do not support JWS. What is stored is the core,
its signature and whose receipt it is: `StoredReceipt`.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import quote

import msgspec

from toolserver.core.models import iso, iso_ms
from toolserver.money.receipts.keys import Key, b64

MOST_BYTES = 16_384  # of a receipt that is sent for verification
MOST_NONCE = 64
SAFE = 2**53 - 1
TYPE = "receipt+jws"

Kind = Literal["call", "webhook", "purchase", "no_charge"]
Core = dict[str, Any]
Algorithm = Literal["EdDSA", "Ed25519"]
"""The names that a JWS may use for the one kind of signature made here: first that of RFC 8037, then RFC 9864's."""
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)

_encoder = msgspec.json.Encoder(order="sorted")


def encode(value: Any) -> bytes:
    """Return canonical JSON (RFC 8785). Values must have no floats and only ASCII names."""
    return _encoder.encode(value)


class Body(NamedTuple):
    """The SHA-256 (hex) of a response body, and its size in bytes."""

    sha256: str
    size: int


class Sale(NamedTuple):
    """A paid call after it ended. `owner` is the SHA-256 (hex) of its token. `body` is None
    for a failure, and a function of the receipt's id if the body names its receipt. `pending`
    means that it is not known yet how the call was settled. `captured_at` is in epoch seconds,
    `sla_s` in seconds; `cost`, `charged` and `remaining` are credits.
    """

    call_id: str
    owner: str
    endpoint: str
    request: str
    cost: int
    charged: int
    remaining: int | None
    method: str = "GET"
    reason: str | None = None
    status: int = 200
    body: Body | Callable[[str], Body] | None = None
    captured_at: float | None = None
    sla_s: float | None = None
    nonce: str | None = None
    kind: Kind = "call"
    pending: bool = False

    @property
    def certain(self) -> int:
        """The credits that are certainly charged: none while it is not known."""
        return 0 if self.pending else self.charged

    def find_body(self, receipt_id: str) -> Body | None:
        """Return the body that goes out with the receipt of this id."""
        return self.body(receipt_id) if callable(self.body) else self.body


class SignedReceipt(NamedTuple):
    """A receipt for a caller: its id, and the receipt itself as JWS."""

    id: str
    jws: str


def receipt_id(call_id: str) -> str:
    """Return the id of a call's receipt: `rcpt_` and the 128 bits of the call_id."""
    return "rcpt_" + call_id.removeprefix("call_")


def request_text(method: str, path: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in one line, such as `GET /api/pro/macro?history=30d`, its arguments sorted and percent-encoded.

    Values are encoded before they are joined, so that no value can look like two. A list is
    joined by commas.
    """
    pairs = [f"{_quoted(name)}={_quoted(_written(value))}" for name, value in sorted(arguments.items())]
    return f"{method} {path}" + ("?" + "&".join(pairs) if pairs else "")


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return encode(value).decode()


def echo_request(nonce: str | None) -> str | None:
    """Return the caller's nonce if it is printable ASCII and at most `MOST_NONCE` characters long, otherwise None."""
    fits = nonce and len(nonce) <= MOST_NONCE and nonce.isascii() and nonce.isprintable()
    return nonce if fits else None


SHARED = (
    *("v", "service", "kind", "endpoint", "method", "status", "cost", "credits_charged", "settlement"),
    *("no_charge_reason", "freshness_sla_s"),
)
"""The members of a core that many receipts have in common, in the order in which forms are stored."""


class OwnMembers(NamedTuple):
    """The members of a core that are those of one call, by name."""

    agent_nonce: str | None
    balance_after: int | None
    call_id: str
    captured_at: str | None
    id: str
    issued_at: str
    log: Mapping[str, Any] | None
    request_hash: str
    response_bytes: int
    response_sha256: str | None
    token_fp: str


def core_of(
    sale: Sale, *, service: str, now: float, log: Mapping[str, Any] | None = None, id: str | None = None
) -> Core:
    """Return the core of a receipt, issued at `now` (epoch seconds). `log` names its place in the public log."""
    own = list_own(sale, now=now, log=log, id=id or receipt_id(sale.call_id))
    return {**dict(zip(SHARED, list_shared(sale, service), strict=True)), **own._asdict()}


def list_shared(sale: Sale, service: str) -> tuple[Any, ...]:
    """Return the values of `SHARED` for a sale of this service."""
    return (
        1,
        service,
        sale.kind if sale.reason is None else "no_charge",
        sale.endpoint,
        sale.method,
        sale.status,
        sale.cost,
        sale.certain,
        "pending" if sale.pending else "charged" if sale.certain else "released",
        sale.reason,
        None if sale.sla_s is None else round(sale.sla_s),
    )


def list_own(sale: Sale, *, now: float, log: Mapping[str, Any] | None, id: str) -> OwnMembers:
    """Return the members of the call's own, for a receipt of this id. See `core_of`."""
    body = sale.find_body(id)
    return OwnMembers(
        echo_request(sale.nonce),
        sale.remaining,
        sale.call_id,
        None if sale.captured_at is None else _second(sale.captured_at),
        id,
        iso_ms(now),
        None if log is None else dict(log),
        _hash_request(sale.request),
        body.size if body else 0,
        body.sha256 if body else None,
        sale.owner[:16],
    )


@lru_cache(256)
def _hash_request(text: str) -> str:
    """Return the SHA-256 (hex) of a request in one line. Cached, because most requests are made many times."""
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(256)
def _second(at: float) -> str:
    """Return the time of an answer (epoch seconds) as ISO 8601. Cached, because many calls share one answer."""
    return iso(datetime.fromtimestamp(at, UTC))


def name_signer(kid: str, algorithm: Algorithm) -> str:
    """Return the name under which stores know a key: its id, preceded by the algorithm if that is not EdDSA."""
    return kid if algorithm == "EdDSA" else f"{algorithm}:{kid}"


def key_id(signer: str) -> str:
    """Return the id of the key in a signer's name. An id contains no colon, because it is base64url."""
    return signer.rpartition(":")[2]


@cache
def header(signer: str) -> str:
    """Return the JWS header, the first part of every receipt of a signer."""
    algorithm, _, kid = signer.rpartition(":")
    return b64(encode({"alg": algorithm or "EdDSA", "kid": kid, "typ": TYPE}))


@cache
def _first_part(signer: str) -> bytes:
    return f"{header(signer)}.".encode()


def signing_input(signer: str, payload: bytes) -> bytes:
    """Return the bytes that a signer signs."""
    return _first_part(signer) + base64.urlsafe_b64encode(payload).rstrip(b"=")


def compact(signer: str, payload: bytes, signature: bytes) -> str:
    """Return the receipt as it is sent in a header: a JWS in compact form."""
    return f"{header(signer)}.{b64(payload)}.{b64(signature)}"


def as_object(core: Core, kid: str, signature: bytes) -> Core:
    """Return the receipt as an object: the core, and a signature over the core's own bytes."""
    return {**core, "signature": b64(signature), "key_id": kid}


class StoredReceipt(NamedTuple):
    """A receipt as it is stored: `core`, the JWS signature over it, and the name of its
    signer. `owner` is the SHA-256 (hex) of the token that paid, `at` is in epoch milliseconds.
    """

    id: str
    owner: str
    core: bytes
    signer: str
    signature: bytes
    at: int

    @property
    def jws(self) -> str:
        """The receipt as it is sent in a header."""
        return compact(self.signer, self.core, self.signature)

    def show(self, key: Key | None) -> dict[str, Any]:
        """Return the core as an object, with a signature over its own bytes if `key` still has its private half."""
        core = msgspec.json.decode(self.core)
        return core if key is None or key.seed is None else as_object(core, key.kid, key.sign(self.core))

    def is_signed_by(self, key: Key) -> bool:
        """Return True if the stored signature is the key's, over the stored core."""
        return key.verifies(self.signature, signing_input(self.signer, self.core))

    def fits(self, sale: Sale) -> bool:
        """Return True if it describes this sale, not another answer to the same call or a
        charge that was reversed later.
        """
        about = msgspec.json.decode(self.core)
        body = sale.find_body(self.id)
        digest = body.sha256 if body else None
        return bool(about["response_sha256"] == digest and about["credits_charged"] == sale.certain)
