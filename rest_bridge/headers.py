"""Response headers: what never changes is prepared once, what changes by the second is kept for a second."""

import base64
from email.utils import formatdate
from typing import Any

from rest_bridge.asgi import Header
from toolserver.documents import Facts
from toolserver.limits import Standing
from toolserver.payments.x402.headers import header
from toolserver.rendering import COMPRESS_FROM, ENCODINGS, Rendered

EXPOSED = (
    "Age, Cache-Status, Content-Digest, Deprecation, ETag, Link, Payment-Required, Payment-Response, RateLimit, "
    "RateLimit-Policy, Retry-After, Sunset, "
    "X-Credits-Remaining, X-Request-Id, X-Service-Deprecation, X-Service-Pricing, "
    "X-Service-Receipt, X-Service-Receipt-Id"
)
ALLOWED = (
    "Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Payment-Signature, "
    "X-Agent-Nonce, X-Request-Id"
)
STALE_IF_ERROR_S = 86400

JSON_TYPE: Header = (b"content-type", b"application/json")
PROBLEM_TYPE: Header = (b"content-type", b"application/problem+json")
ANY_ORIGIN: Header = (b"access-control-allow-origin", b"*")
NO_STORE: Header = (b"cache-control", b"no-store")
PRIVATE: Header = (b"cache-control", b"private, no-store")
VARY: Header = (b"vary", b"Accept-Encoding")


class HeaderBook:
    """The headers of every answer of one server."""

    def __init__(self, facts: Facts) -> None:
        describes = f'<{facts.url("/openapi.json")}>; rel="service-desc"'
        licence = f'<{facts.url("/docs")}#licence>; rel="license"'
        self.always: list[Header] = [
            ANY_ORIGIN,
            (b"access-control-expose-headers", EXPOSED.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
            (b"link", f"{describes}, {licence}".encode()),
        ]
        if facts.base_url.startswith("https:"):
            self.always.append((b"strict-transport-security", b"max-age=31536000"))
        self.sold: list[Header] = [JSON_TYPE, PRIVATE, VARY, *self.always]
        self.preflight: list[Header] = [
            ANY_ORIGIN,
            (b"access-control-allow-headers", ALLOWED.encode()),
            (b"access-control-max-age", b"86400"),
        ]
        self.pricing: Header = (b"x-service-pricing", facts.url("/docs/payments").encode())

    def free(self, rendered: Rendered, encoding: str | None, now: float, *, hit: bool) -> list[Header]:
        """The headers of a free answer but those that belong to this very request. Not to be changed by the caller."""
        second = int(now)
        slot = ("headers", encoding, hit)
        kept = rendered.memo.get(slot)
        if kept is not None and kept[0] == second:
            return kept[1]  # type: ignore[no-any-return]
        headers = [JSON_TYPE, *self._caching(rendered, encoding, now, hit), VARY, *self.always]
        if encoding:
            headers.append((b"content-encoding", encoding.encode()))
        size = len(rendered.variant(encoding) if encoding else rendered.payload)
        headers.append((b"content-length", b"%d" % size))
        rendered.memo[slot] = (second, headers)
        return headers

    def _caching(self, rendered: Rendered, encoding: str | None, now: float, hit: bool) -> list[Header]:
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
            (b"etag", etag(rendered, encoding)),
            (b"last-modified", formatdate(at, usegmt=True).encode()),
            (b"cache-status", f"toolserver; {how}; ttl={left}".encode()),
        ]


def digest(rendered: Rendered) -> Header:
    """Content-Digest (RFC 9530) of the payload as it is, without any content coding."""
    return b"content-digest", b"sha-256=:%s:" % base64.b64encode(rendered.sha256())


def settlement(told: dict[str, Any]) -> Header:
    """PAYMENT-RESPONSE: what became of a payment (x402)."""
    return b"payment-response", header(told).encode()


def etag(rendered: Rendered, encoding: str | None) -> bytes:
    """A strong validator of these bytes: each encoding is another representation."""
    return f'"{rendered.etag}-{encoding}"'.encode() if encoding else f'"{rendered.etag}"'.encode()


def matches(if_none_match: bytes, rendered: Rendered) -> bool:
    """Whether the client has these bytes already, in whatever encoding."""
    if if_none_match.strip() == b"*":
        return True
    tags = (tag.strip().removeprefix(b"W/").strip(b'"') for tag in if_none_match.split(b","))
    own = rendered.etag.encode()
    return any(tag == own or tag.rpartition(b"-")[0] == own for tag in tags)


def limits(policy: str, standings: list[Standing]) -> list[Header]:
    """RateLimit-Policy and RateLimit, or nothing where no limit was looked at."""
    if not standings:
        return []
    left = ", ".join(standing.header for standing in standings)
    return [(b"ratelimit-policy", policy.encode()), (b"ratelimit", left.encode())]


_chosen: dict[bytes, str | None] = {}


def choose_encoding(accept: bytes, size: int) -> str | None:
    """The best encoding the client takes for a body of this size, or None for plain bytes."""
    if size < COMPRESS_FROM or not accept:
        return None
    if accept in _chosen:
        return _chosen[accept]
    choice = _negotiated(accept)
    if len(_chosen) < 500:
        _chosen[accept] = choice
    return choice


def _negotiated(accept: bytes) -> str | None:
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
