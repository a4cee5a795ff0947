"""Reads request headers and writes response headers.

Constant ones are prepared once, those that change every second are kept for a second.
"""

import base64
import functools
from collections.abc import Callable, Iterable, Sequence
from email.utils import formatdate
from typing import Any

from rest_bridge.asgi import Header
from rest_bridge.etag import answer_etag, holds_etag
from toolserver.calls.pipeline import Outcome
from toolserver.calls.rate_limit import LimitState
from toolserver.calls.response import COMPRESS_FROM, ENCODINGS, RenderedResponse
from toolserver.core.caller import REFERENCE, is_sane_request_id, new_request_id
from toolserver.money.x402.wire import header, settle_version_1
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, find_deprecations, write_headers
from toolserver.registry.registry import Operation
from toolserver.registry.site_facts import SiteFacts, link_header

EXPOSED = (
    "Age, Cache-Status, Content-Digest, Deprecation, ETag, Idempotency-Replayed, Link, Payment-Required, "
    "Payment-Response, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, Sunset, "
    "X-Credits-Alert, X-Credits-Remaining, X-Request-Id, X-Service-Deprecation, X-Service-Pricing, "
    "X-Service-Receipt, X-Service-Receipt-Id"
)
ALLOWED = (
    "Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Payment-Signature, Prefer, "
    "X-Agent-Nonce, X-Payment, X-Request-Id"
)
STALE_IF_ERROR_S = 86400

JSON_TYPE: Header = (b"content-type", b"application/json")
PROBLEM_TYPE: Header = (b"content-type", b"application/problem+json")
ANY_ORIGIN: Header = (b"access-control-allow-origin", b"*")
NO_STORE: Header = (b"cache-control", b"no-store")
PRIVATE: Header = (b"cache-control", b"private, no-store")
VARY: Header = (b"vary", b"Accept-Encoding")
_BY_REFERENCE: Header = (b"preference-applied", b"receipt=reference")


class HeaderBook:
    """The response headers of one server, and of the answers of its tools (`operations`)."""

    def __init__(
        self,
        facts: SiteFacts,
        operations: Iterable[Operation] = (),
        deprecations: Sequence[Deprecation] = DEPRECATIONS,
    ) -> None:
        self.always: list[Header] = [
            ANY_ORIGIN,
            (b"access-control-expose-headers", EXPOSED.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
            (b"link", link_header(facts).encode()),
        ]
        if facts.base_url.startswith("https:"):
            self.always.append((b"strict-transport-security", b"max-age=31536000"))
        self._announced = {operation.name: _announce(operation, deprecations) for operation in operations}
        self._sold = {
            name: [JSON_TYPE, PRIVATE, VARY, *self.always, *announced] for name, announced in self._announced.items()
        }
        self.preflight: list[Header] = [
            ANY_ORIGIN,
            (b"access-control-allow-headers", ALLOWED.encode()),
            (b"access-control-max-age", b"86400"),
        ]
        self.pricing: Header = (b"x-service-pricing", facts.url("/docs/payments").encode())

    def sold(self, operation: Operation) -> list[Header]:
        """Return the headers of an answer that is only for its caller. Do not modify the list."""
        return self._sold[operation.name]

    def free(
        self, operation: Operation, rendered: RenderedResponse, encoding: str | None, now: float, *, hit: bool
    ) -> list[Header]:
        """Return the headers of a free answer that do not depend on the request. Do not modify the list."""
        second = int(now)
        slot = ("headers", encoding, hit)
        prepared = rendered.memo.get(slot)
        if prepared is not None and prepared[0] == second:
            return prepared[1]  # type: ignore[no-any-return]
        headers = [JSON_TYPE, *self._caching(rendered, encoding, now, hit), VARY, *self.always]
        headers += self._announced[operation.name]
        if encoding:
            headers.append((b"content-encoding", encoding.encode()))
        size = len(rendered.variant(encoding) if encoding else rendered.payload)
        headers.append((b"content-length", b"%d" % size))
        rendered.memo[slot] = (second, headers)
        return headers

    def _caching(self, rendered: RenderedResponse, encoding: str | None, now: float, hit: bool) -> list[Header]:
        left = rendered.left(now)
        if not rendered.keepable:
            return [NO_STORE, (b"cache-status", b"toolserver; fwd=bypass")]
        if rendered.nothing:
            return [NO_STORE, (b"cache-status", b"toolserver; fwd=miss; detail=upstream-down")]
        how = "hit" if hit else "fwd=stale" if rendered.stale else "fwd=miss; stored"
        if hit and rendered.stale:
            how = "hit; detail=stale"
        at = rendered.oldest_at if rendered.oldest_at is not None else rendered.generated_at
        return [
            (b"cache-control", f"public, max-age={left}, stale-if-error={STALE_IF_ERROR_S}".encode()),
            (b"age", b"%d" % rendered.age(now)),
            (b"etag", answer_etag(rendered, encoding)),
            (b"last-modified", formatdate(at, usegmt=True).encode()),
            (b"cache-status", f"toolserver; {how}; ttl={left}".encode()),
        ]


def _announce(operation: Operation, deprecations: Sequence[Deprecation]) -> list[Header]:
    """Return the headers that announce deprecated parts of a tool."""
    announced = write_headers(find_deprecations(operation, deprecations))
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in announced.items()]


def digest(rendered: RenderedResponse) -> Header:
    """Return the Content-Digest (RFC 9530) of the payload without any content coding."""
    header_line: Header | None = rendered.memo.get("content-digest")
    if header_line is None:
        header_line = b"content-digest", b"sha-256=:%s:" % base64.b64encode(rendered.sha256())
        rendered.memo["content-digest"] = header_line
    return header_line


def settlement(outcome: dict[str, Any]) -> Header:
    """Return PAYMENT-RESPONSE, which says how an x402 payment ended."""
    return b"payment-response", header(outcome).encode()


def settlement_version_1(outcome: dict[str, Any]) -> Header:
    """Return X-PAYMENT-RESPONSE, the same header for clients of x402 version 1."""
    return b"x-payment-response", header(settle_version_1(outcome)).encode()


def limits(policy: bytes, limit_states: list[LimitState]) -> list[Header]:
    """Return RateLimit-Policy and RateLimit, or no header if no limit was checked."""
    if not limit_states:
        return []
    left = ", ".join([state.header for state in limit_states])
    return [(b"ratelimit-policy", policy), (b"ratelimit", left.encode())]


def complete_policy(headers: list[Header], free: bytes) -> list[Header]:
    """Return the headers of a 429 in which RateLimit-Policy has all `free` policies if it names one of them."""
    name = b"ratelimit-policy"
    return [(name, free) if each == name and value in free.split(b", ") else (each, value) for each, value in headers]


def choose_encoding(accept: bytes, size: int) -> str | None:
    """Return the best encoding that the client accepts for a body of `size` bytes, or None for plain bytes."""
    if size < COMPRESS_FROM or not accept:
        return None
    return negotiate(accept)


@functools.lru_cache(500)
def negotiate(accept: bytes) -> str | None:
    """Return the best encoding that an Accept-Encoding names. Only so many different headers are remembered."""
    weights: dict[str, float] = {}
    for part in accept.decode("latin-1").lower().split(","):
        name, _, parameter = part.strip().partition(";")
        quality = parameter.strip().removeprefix("q=") or "1"
        try:
            weights[name.strip()] = float(quality)
        except ValueError:
            weights[name.strip()] = 0.0
    anything = weights.get("*", 0.0)
    best = max(ENCODINGS, key=lambda e: weights.get(e, anything))
    return best if weights.get(best, anything) > 0 else None


def request_id(own: bytes) -> str:
    """Return the caller's request id if it is valid, otherwise a new one."""
    if own and is_sane_request_id(text := own.decode("latin-1")):
        return text
    return new_request_id()


def text(value: bytes | None) -> str | None:
    """Return a header's value as text."""
    return value.decode("latin-1") if value is not None else None


def prefers_reference(prefer: bytes | None) -> bool:
    """Return True if a Prefer header (RFC 7240) asks for `receipt=reference`. The first `receipt` counts."""
    if not prefer:
        return False
    for preference in prefer.decode("latin-1").split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "receipt":
            return value.strip().strip('"') == REFERENCE
    return False


def match_etag(if_none_match: bytes | None, accept: bytes | None) -> Callable[[RenderedResponse], bool] | None:
    """Return a function that says whether the client has the bytes that its Accept-Encoding would select.

    Return None if the client sent no If-None-Match.
    """
    if if_none_match is None:
        return None

    def has(rendered: RenderedResponse) -> bool:
        encoding = choose_encoding(accept, len(rendered.payload)) if accept else None
        return holds_etag(if_none_match, answer_etag(rendered, encoding))

    return has


def without_entity(headers: list[Header]) -> list[Header]:
    """Return the headers of a 304: those of a 200 without the ones about the body."""
    return [x for x in headers if x[0] not in (b"content-type", b"content-length", b"content-encoding")]


def paid_headers(outcome: Outcome, lines: Sequence[Header] = ()) -> list[Header]:
    """Return a paid answer's headers: credits, receipt, and the payment sent in `lines`, the request's headers."""
    headers: list[Header] = []
    if outcome.credits_remaining is not None:
        headers.append((b"x-credits-remaining", b"%d" % outcome.credits_remaining))
    if outcome.way == "repeated":
        headers.append((b"idempotency-replayed", b"true"))
    if outcome.alerts:
        headers.append((b"x-credits-alert", ", ".join(outcome.alerts).encode()))
    if outcome.receipt_id:
        headers.append((b"x-service-receipt-id", outcome.receipt_id.encode()))
        headers.append((b"x-service-receipt", outcome.receipt.encode()) if outcome.receipt else _BY_REFERENCE)
    if outcome.settlement is not None:
        headers.append(settlement(outcome.settlement))
        if any(name == b"x-payment" for name, _ in lines):
            headers.append(settlement_version_1(outcome.settlement))
    return headers
