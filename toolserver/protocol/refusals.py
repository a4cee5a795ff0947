"""Messages that are refused before anyone reads them: not JSON, not JSON-RPC, of two minds."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolserver.protocol import wire
from toolserver.protocol.wire import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, VERSION_KEY

ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class Refusal(Exception):
    """A JSON-RPC error with an HTTP status. `value` is the id of the message it answers, when that is known."""

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        *,
        data: Any = None,
        value: wire.Id | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.data, self.value, self.headers = status, code, data, value, headers

    @property
    def body(self) -> bytes:
        """The JSON-RPC error."""
        return wire.failure(self.value, self.code, str(self), self.data)


def inspect(body: bytes) -> dict[str, Any]:
    """The one JSON-RPC message of a body, as far as JSON-RPC goes.

    Raises:
        Refusal: it is none.
    """
    message = _json(body)
    if isinstance(message, list):
        raise Refusal(400, INVALID_REQUEST, "Batches are not served: send one message per request.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Refusal(400, INVALID_REQUEST, 'The body is not a JSON-RPC message: an object with `"jsonrpc": "2.0"`.')
    value = message.get("id")
    if "id" in message and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise Refusal(400, INVALID_REQUEST, "`id` is a string or an integer.")
    if "method" not in message:
        _check_response(message)
    elif not isinstance(message["method"], str):
        raise Refusal(400, INVALID_REQUEST, "`method` is a string.", value=value)
    if not isinstance(message.get("params"), dict | None):
        raise Refusal(400, INVALID_PARAMS, "`params` is an object.", value=value)
    return message


def _check_response(message: Mapping[str, Any]) -> None:
    """A message without a method is a response, which has one of two forms."""
    error = message.get("error")
    fails = isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    if "id" not in message or isinstance(message.get("result"), dict) == fails:
        text = "The message has no `method`, and is no response either."
        raise Refusal(400, INVALID_REQUEST, text, value=message.get("id"))


def _json(body: bytes) -> Any:
    try:
        return wire.decode(body)
    except RecursionError:
        raise Refusal(400, PARSE_ERROR, "The JSON is nested too deeply.") from None
    except UnicodeDecodeError:
        raise Refusal(400, PARSE_ERROR, "The body is not UTF-8.") from None
    except msgspec.MsgspecError as error:
        raise Refusal(400, PARSE_ERROR, f"The body is not JSON: {error}") from None


def enveloped(message: Mapping[str, Any]) -> bool:
    """Whether a message says in its `_meta` that it is of the modern era."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_version(message: Mapping[str, Any], version: bytes | None, *, strict: bool) -> None:
    """A modern message has the modern version header. `strict` refuses legacy headers on one, too.

    Raises:
        Refusal: HeaderMismatch.
    """
    if message.get("method") == "initialize" or not enveloped(message):
        return
    if version is None or (strict and version.decode("latin-1") in wire.LEGACY):
        said = "is missing" if version is None else "names another version"
        text = f"The header MCP-Protocol-Version {said}: it must equal `params._meta[{VERSION_KEY!r}]`."
        raise Refusal(400, HEADER_MISMATCH, text, value=message.get("id"))


def check_twins(lines: Iterable[tuple[bytes, bytes]]) -> None:
    """The headers that say what a message is appear once: two readers might take one each.

    Raises:
        Refusal: HeaderMismatch.
    """
    names = [bytes(name) for name, _ in lines]
    for name in ROUTING:
        if names.count(name) > 1:
            raise Refusal(400, HEADER_MISMATCH, f"The header {name.decode()} appears more than once.")


def id_of(body: bytes) -> wire.Id | None:
    """The id of a message that is refused for another reason, if it has a proper one."""
    try:
        return inspect(body).get("id")
    except Refusal:
        return None
