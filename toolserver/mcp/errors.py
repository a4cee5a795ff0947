"""Refuse messages that are not JSON, are not JSON-RPC, or contradict their own headers."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolserver.mcp import messages
from toolserver.mcp.messages import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, VERSION_KEY

ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class MessageRefusal(Exception):
    """A JSON-RPC error with an HTTP status. `value` is the id of the message that it answers, if known."""

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        *,
        data: Any = None,
        value: messages.Id | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.data, self.value, self.headers = status, code, data, value, headers

    @property
    def body(self) -> bytes:
        """The JSON-RPC error as bytes."""
        return messages.failure(self.value, self.code, str(self), self.data)


def parse_message(body: bytes) -> dict[str, Any]:
    """Parse the single JSON-RPC message in a body, and check the rules of JSON-RPC.

    Raises:
        MessageRefusal: the body is not a JSON-RPC message.
    """
    message = _json(body)
    if isinstance(message, list):
        raise MessageRefusal(400, INVALID_REQUEST, "Batches are not supported: send one message per request.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise MessageRefusal(
            400, INVALID_REQUEST, 'The body is not a JSON-RPC message: an object with `"jsonrpc": "2.0"`.'
        )
    value = message.get("id")
    if "id" in message and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise MessageRefusal(400, INVALID_REQUEST, "`id` must be a string or an integer.")
    if "method" not in message:
        _check_response(message)
    elif not isinstance(message["method"], str):
        raise MessageRefusal(400, INVALID_REQUEST, "`method` must be a string.", value=value)
    if not isinstance(message.get("params"), dict | None):
        raise MessageRefusal(400, INVALID_PARAMS, "`params` must be an object.", value=value)
    if message.get("method") == "tools/call" and "id" in message:
        _check_call(message.get("params") or {}, value, 400 if has_modern_envelope(message) else 200)
    return message


def _check_call(params: Mapping[str, Any], value: Any, status: int) -> None:
    """Refuse a malformed call in words that a model can act on. `status` is the era's status for a malformed call."""
    example = '{"name": "btc_price", "arguments": {}}'
    if not isinstance(params.get("name"), str):
        text = f"`params.name` must be the name of a tool, for example {example}; tools/list has the names."
        raise MessageRefusal(status, INVALID_PARAMS, text, value=value)
    if not isinstance(params.get("arguments"), dict | None):
        text = f"`params.arguments` must be a JSON object, for example {example}."
        raise MessageRefusal(status, INVALID_PARAMS, text, value=value)


def _check_response(message: Mapping[str, Any]) -> None:
    """Check that a message without a method has one of the two forms of a response."""
    error = message.get("error")
    fails = isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    if "id" not in message or isinstance(message.get("result"), dict) == fails:
        text = "The message has no `method` and is not a response."
        raise MessageRefusal(400, INVALID_REQUEST, text, value=message.get("id"))


def _json(body: bytes) -> Any:
    try:
        return messages.decode(body)
    except RecursionError:
        raise MessageRefusal(400, PARSE_ERROR, "The JSON is nested too deeply.") from None
    except UnicodeDecodeError:
        raise MessageRefusal(400, PARSE_ERROR, "The body is not UTF-8.") from None
    except msgspec.MsgspecError as error:
        raise MessageRefusal(400, PARSE_ERROR, f"The body is not JSON: {error}") from None


def has_modern_envelope(message: Mapping[str, Any]) -> bool:
    """Return True if a message's `_meta` says that it belongs to the modern era."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_version(message: Mapping[str, Any], version: bytes | None, *, strict: bool) -> None:
    """Check that a modern message has the modern version header. `strict` also refuses legacy headers on it.

    Raises:
        MessageRefusal: HeaderMismatch.
    """
    if message.get("method") == "initialize" or not has_modern_envelope(message):
        return
    if version is None or (strict and version.decode("latin-1") in messages.LEGACY):
        said = "is missing" if version is None else "names another version"
        text = f"The header MCP-Protocol-Version {said}: it must equal `params._meta[{VERSION_KEY!r}]`."
        raise MessageRefusal(400, HEADER_MISMATCH, text, value=message.get("id"))


def check_repeated_headers(lines: Iterable[tuple[bytes, bytes]]) -> None:
    """Check that the headers that identify a message appear only once: two readers might use different ones.

    Raises:
        MessageRefusal: HeaderMismatch.
    """
    names = [bytes(name) for name, _ in lines]
    for name in ROUTING:
        if names.count(name) > 1:
            raise MessageRefusal(400, HEADER_MISMATCH, f"The header {name.decode()} appears more than once.")


def read_id(body: bytes) -> messages.Id | None:
    """Return the id of a message that is refused for another reason, if it has a valid id."""
    try:
        return parse_message(body).get("id")
    except MessageRefusal:
        return None
