"""Small parts of an exchange: interprets request headers and writes response headers."""

from collections.abc import Callable, Sequence

from rest_bridge import headers as h
from rest_bridge.asgi import Header
from rest_bridge.etag import answer_etag, holds_etag
from toolserver.calls.cache_key import build_cache_key
from toolserver.calls.outcome import Outcome
from toolserver.calls.response import RenderedResponse
from toolserver.core import ids
from toolserver.core.caller import REFERENCE
from toolserver.registry.registry import Operation, Tier

_BY_REFERENCE: Header = (b"preference-applied", b"receipt=reference")


class Endpoint:
    """One operation at its path, with the cache key of its answer to a call without arguments."""

    __slots__ = ("arguments", "default_key", "operation")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        required = any(field.is_required() for field in operation.arguments.model_fields.values())
        cached = operation.tier in (Tier.FREE, Tier.PREMIUM) and operation.reads_only
        self.arguments = operation.arguments() if cached and not required else None
        self.default_key = build_cache_key(operation, self.arguments) if self.arguments is not None else None


def request_id(given: bytes) -> str:
    """Return the caller's request id if it is valid, otherwise a new one."""
    if given and ids.sane(text := given.decode("latin-1")):
        return text
    return ids.request_id()


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
        encoding = h.choose_encoding(accept, len(rendered.payload)) if accept else None
        return holds_etag(if_none_match, answer_etag(rendered, encoding))

    return has


def without_entity(headers: list[Header]) -> list[Header]:
    """Return the headers of a 304: those of a 200 without the ones about the body."""
    return [x for x in headers if x[0] not in (b"content-type", b"content-length", b"content-encoding")]


def paid_headers(outcome: Outcome, lines: Sequence[Header] = ()) -> list[Header]:
    """Return a paid answer's headers: credits, receipt, and the payment sent in `lines`, the request's headers."""
    found: list[Header] = []
    if outcome.credits_remaining is not None:
        found.append((b"x-credits-remaining", b"%d" % outcome.credits_remaining))
    if outcome.receipt_id:
        found.append((b"x-service-receipt-id", outcome.receipt_id.encode()))
        found.append((b"x-service-receipt", outcome.receipt.encode()) if outcome.receipt else _BY_REFERENCE)
    if outcome.settlement is not None:
        found.append(h.settlement(outcome.settlement))
        if any(name == b"x-payment" for name, _ in lines):
            found.append(h.settlement_version_1(outcome.settlement))
    return found
