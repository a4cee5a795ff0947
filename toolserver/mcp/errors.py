"""Messages that are refused before anyone reads them: not JSON, not JSON-RPC, or contradicting their own headers."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolserver.mcp import messages
from toolserver.mcp.messages import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, VERSION_KEY

ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class MessageRefusal(Exception):
    """A JSON-RPC error with an HTTP status. `value` is the id of the message it answers, when that is known."""

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
        """The JSON-RPC error."""
        return messages.failure(self.value, self.code, str(self), self.data)


def parse_message(body: bytes) -> dict[str, Any]:
    """The one JSON-RPC message of a body, as far as JSON-RPC goes.

    Raises:
        Refusal: it is none.
    """
    message = _json(body)
    if isinstance(message, list):
        raise MessageRefusal(400, INVALID_REQUEST, "Batches are not served: send one message per request.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise MessageRefusal(
            400, INVALID_REQUEST, 'The body is not a JSON-RPC message: an object with `"jsonrpc": "2.0"`.'
        )
    value = message.get("id")
    if "id" in message and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise MessageRefusal(400, INVALID_REQUEST, "`id` is a string or an integer.")
    if "method" not in message:
        _check_response(message)
    elif not isinstance(message["method"], str):
        raise MessageRefusal(400, INVALID_REQUEST, "`method` is a string.", value=value)
    if not isinstance(message.get("params"), dict | None):
        raise MessageRefusal(400, INVALID_PARAMS, "`params` is an object.", value=value)
    if message.get("method") == "tools/call" and "id" in message:
        _check_call(message.get("params") or {}, value, 400 if has_modern_envelope(message) else 200)
    return message


def _check_call(params: Mapping[str, Any], value: Any, status: int) -> None:
    """Say what a call needs, in words that a model can act on; `status` is what its era uses for a wrong call."""
    example = '{"name": "btc_price", "arguments": {}}'
    if not isinstance(params.get("name"), str):
        text = f"`params.name` must be the name of a tool, for example {example}; tools/list has the names."
        raise MessageRefusal(status, INVALID_PARAMS, text, value=value)
    if not isinstance(params.get("arguments"), dict | None):
        text = f"`params.arguments` must be a JSON object, for example {example}."
        raise MessageRefusal(status, INVALID_PARAMS, text, value=value)


def _check_response(message: Mapping[str, Any]) -> None:
    """A message without a method is a response, which has one of two forms."""
    error = message.get("error")
    fails = isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    if "id" not in message or isinstance(message.get("result"), dict) == fails:
        text = "The message has no `method`, and is no response either."
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
    """Whether a message says in its `_meta` that it is of the modern era."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_version(message: Mapping[str, Any], version: bytes | None, *, strict: bool) -> None:
    """A modern message has the modern version header. `strict` refuses legacy headers on one, too.

    Raises:
        Refusal: HeaderMismatch.
    """
    if message.get("method") == "initialize" or not has_modern_envelope(message):
        return
    if version is None or (strict and version.decode("latin-1") in messages.LEGACY):
        said = "is missing" if version is None else "names another version"
        text = f"The header MCP-Protocol-Version {said}: it must equal `params._meta[{VERSION_KEY!r}]`."
        raise MessageRefusal(400, HEADER_MISMATCH, text, value=message.get("id"))


def check_repeated_headers(lines: Iterable[tuple[bytes, bytes]]) -> None:
    """The headers that say what a message is appear once: two readers might take one each.

    Raises:
        Refusal: HeaderMismatch.
    """
    names = [bytes(name) for name, _ in lines]
    for name in ROUTING:
        if names.count(name) > 1:
            raise MessageRefusal(400, HEADER_MISMATCH, f"The header {name.decode()} appears more than once.")


def read_id(body: bytes) -> messages.Id | None:
    """The id of a message that is refused for another reason, if it has a proper one."""
    try:
        return parse_message(body).get("id")
    except MessageRefusal:
        return None
