"""Reads the response to a call: the answer with what its headers say, or the exception of a refusal's error code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from toolserver.core.http import HttpAnswer, Unreachable
from toolserver.errors import CallRejected

T = TypeVar("T")
_NOT_EXTRA = {"type", "title", "status", "error", "detail"}


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
        return int(said) if said is not None and said.isascii() and said.isdigit() else None

    @property
    def request_id(self) -> str | None:
        """The id to give when you report a problem."""
        return self.headers.get("x-request-id")


def read_json(answer: HttpAnswer) -> dict[str, object]:
    """Return the JSON object of a response. Raise Unreachable if an intermediary answered instead of the service."""
    try:
        content = json.loads(answer.body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Unreachable(f"status {answer.status}, without a JSON object: this answer is not from the service")
    return content


class UnknownRejection(CallRejected, abstract=True):
    """A refusal with an error code that this version of the client does not know."""

    def __init__(self, code: str, answer: HttpAnswer, said: Mapping[str, Any]) -> None:
        super().__init__(str(said.get("detail", code)), headers=dict(answer.headers), **_extra(said))
        self.code, self.status = code, answer.status  # type: ignore[misc]
        self.title, self.advice = str(said.get("title", code)), str(said.get("type", ""))  # type: ignore[misc]


def read_rejection(answer: HttpAnswer) -> CallRejected:
    """Return the exception. `extra` has the members of the body that belong to its code, and the request id.

    Raises:
        Unreachable: an intermediary answered instead of the service.
    """
    said: dict[str, Any] = read_json(answer)
    code = said.get("error")
    if not isinstance(code, str):
        raise Unreachable(f"status {answer.status}, without an error code: this answer is not from the service")
    declared = CallRejected.declared.get(code)
    if declared is None:
        return UnknownRejection(code, answer, said)
    rejection = declared.__new__(declared)
    CallRejected.__init__(
        rejection, str(said.get("detail", declared.meaning)), headers={**answer.headers}, **_extra(said)
    )
    return rejection


def _extra(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in _NOT_EXTRA}
