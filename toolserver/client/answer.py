"""Defines the answer to a call: the payload, and what the headers say about it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from toolserver.core.http_client import HttpAnswer, Unreachable

T = TypeVar("T")


@dataclass(frozen=True)
class ToolAnswer(Generic[T]):
    """An answer. `payload` is the JSON as a dict, `body` the exact bytes, which the receipt covers.

    The names in `headers` are in lower case.
    """

    payload: T
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    @property
    def receipt(self) -> str | None:
        """The signed receipt (JWS) of a paid call."""
        return self.headers.get("x-service-receipt")

    @property
    def receipt_id(self) -> str | None:
        """The id of that receipt."""
        return self.headers.get("x-service-receipt-id")

    @property
    def credits_remaining(self) -> int | None:
        """The credits left on the token after this call, or None if the call was not paid."""
        said = self.headers.get("x-credits-remaining")
        return int(said) if said is not None else None

    @property
    def request_id(self) -> str | None:
        """The id to give when you report a problem."""
        return self.headers.get("x-request-id")


def read_json(answer: HttpAnswer) -> dict[str, object]:
    """Return the JSON object of a response. Raise Unreachable if an intermediary answered instead of the service."""
    try:
        content = json.loads(answer.body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Unreachable(f"status {answer.status}, without a JSON object: this answer is not from the service")
    return content
