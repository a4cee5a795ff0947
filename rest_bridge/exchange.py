"""Small parts of an exchange: what a request's headers mean, and what an answer's say."""

from collections.abc import Callable

from rest_bridge import headers as h
from rest_bridge.asgi import Header
from toolserver import ids
from toolserver.answers import key_of
from toolserver.pipeline import Outcome
from toolserver.registry import Operation, Tier
from toolserver.rendering import Rendered


class Endpoint:
    """One operation at its path, and the key of its answer when no argument is given."""

    __slots__ = ("arguments", "default_key", "operation")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        required = any(field.is_required() for field in operation.arguments.model_fields.values())
        cached = operation.tier in (Tier.FREE, Tier.PREMIUM) and operation.reads_only
        self.arguments = operation.arguments() if cached and not required else None
        self.default_key = key_of(operation, self.arguments) if self.arguments is not None else None


def request_id(given: bytes) -> str:
    """The caller's own request id when it is sane, else a new one."""
    if given and ids.sane(text := given.decode("latin-1")):
        return text
    return ids.request_id()


def text(value: bytes | None) -> str | None:
    """A header's value as text."""
    return value.decode("latin-1") if value is not None else None


def unchanged(if_none_match: bytes | None) -> Callable[[Rendered], bool] | None:
    """The question whether the client has an answer's bytes, or None when it did not say what it has."""
    return None if if_none_match is None else lambda rendered: h.matches(if_none_match, rendered)


def without_entity(headers: list[Header]) -> list[Header]:
    """The headers of a 304: those of a 200 but for the body's own."""
    return [x for x in headers if x[0] not in (b"content-type", b"content-length", b"content-encoding")]


def sold(outcome: Outcome) -> list[Header]:
    """What a paid answer says of the credits, its receipt and the payment that came with it."""
    found: list[Header] = []
    if outcome.credits_remaining is not None:
        found.append((b"x-credits-remaining", b"%d" % outcome.credits_remaining))
    if outcome.receipt_id and outcome.receipt:
        found.append((b"x-service-receipt-id", outcome.receipt_id.encode()))
        found.append((b"x-service-receipt", outcome.receipt.encode()))
    if outcome.settlement is not None:
        found.append(h.settlement(outcome.settlement))
    return found
