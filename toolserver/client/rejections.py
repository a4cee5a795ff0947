"""Turns the response to a refused call into the exception of its error code."""

from collections.abc import Mapping
from typing import Any

from toolserver.client.answer import read_json
from toolserver.core.http_client import HttpAnswer, Unreachable
from toolserver.errors import CallRejected

_NOT_EXTRA = {"type", "title", "status", "error", "detail"}


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
