"""The basic parts of every HTTP exchange: headers read in one pass, a size-limited body, arguments, replies."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from toolserver.errors import InvalidArguments, InvalidJson, PayloadTooLarge, UnsupportedMediaType

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

MOST_PARAMETERS = 50  # of a query string

_ONCE = {b"authorization", b"content-type", b"idempotency-key", b"content-length", b"payment-signature", b"x-payment"}


@dataclass(slots=True)
class ParsedRequest:
    """The request headers that this package uses, read in one pass."""

    accept: bytes = b""
    accept_encoding: bytes = b""
    if_none_match: bytes | None = None
    request_id: bytes = b""
    authorization: bytes | None = None
    forwarded: bytes | None = None
    agent: bytes = b""
    content_type: bytes | None = None
    content_length: bytes | None = None
    idempotency_key: bytes | None = None
    nonce: bytes | None = None
    payment: bytes | None = None
    origin: bytes | None = None
    prefer: bytes | None = None
    twice: bytes | None = None


HEADER_FIELDS = {
    b"accept": "accept",
    b"accept-encoding": "accept_encoding",
    b"if-none-match": "if_none_match",
    b"x-request-id": "request_id",
    b"authorization": "authorization",
    b"x-forwarded-for": "forwarded",
    b"user-agent": "agent",
    b"content-type": "content_type",
    b"content-length": "content_length",
    b"idempotency-key": "idempotency_key",
    b"x-agent-nonce": "nonce",
    b"payment-signature": "payment",
    b"x-payment": "payment",  # the same in version 1 of x402
    b"origin": "origin",
    b"prefer": "prefer",
}


def parse_request(scope: Scope) -> ParsedRequest:
    """Read the request headers in one pass. Repeated Accept, If-None-Match and X-Forwarded-For are joined."""
    request = ParsedRequest()
    for name, value in scope["headers"]:
        attribute = HEADER_FIELDS.get(name)
        if attribute is None:
            continue
        before = getattr(request, attribute)
        if before:
            if name in _ONCE:  # two payment headers are two payments, even if their versions differ
                request.twice = name
            value = before + b", " + value
        setattr(request, attribute, value)
    return request


async def body_of(receive: Receive, request: ParsedRequest, limit: int) -> bytes:
    """Return the request body.

    Raises PayloadTooLarge above the limit, without reading the whole body, and InvalidJson if
    the client ends the connection before the body is complete: an incomplete request is never
    carried out.
    """
    announced = request.content_length
    if announced and announced.isdigit() and int(announced[:20]) > limit:
        raise _refuse_size(limit)
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise InvalidJson("The connection ended before the whole body had arrived.")
        body += message.get("body") or b""
        if len(body) > limit:
            raise _refuse_size(limit)
        if not message.get("more_body"):
            return body


def _refuse_size(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body may have at most {limit} bytes.", limit_bytes=limit)


def from_query(query: bytes) -> dict[str, str]:
    """Return query parameters by name. Raise InvalidArguments if they are not UTF-8, repeated or far too many."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidArguments(
            "The query string is not URL-encoded UTF-8 or has too many parameters.", errors=[]
        ) from error
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        errors = [{"loc": name, "msg": "given more than once", "type": "repeated"} for name in repeated]
        raise InvalidArguments("A parameter is given more than once.", errors=errors)
    return found


def take_short_meta(given: dict[str, str]) -> bool:
    """Remove `meta` from the query parameters and return True if it is `short`: no tool has this argument.

    Raises InvalidArguments for a value other than `short` and `full`.
    """
    word = given.pop("meta", "full")
    if word not in ("short", "full"):
        error = {"loc": "meta", "msg": "must be short or full", "type": "literal_error"}
        raise InvalidArguments("`meta` must be `short` or `full`.", errors=[error])
    return word == "short"


def from_body(body: bytes, content_type: bytes | None) -> dict[str, Any]:
    """Return the JSON object of a request body; an empty body is an empty object.

    Raises:
        UnsupportedMediaType: the content type is not JSON.
        InvalidJson: the body is not a JSON object.
    """
    if not body.strip():
        return {}
    kind = (content_type or b"application/json").split(b";")[0].strip().lower()
    if kind != b"application/json" and not kind.endswith(b"+json"):
        raise UnsupportedMediaType("Send the body as application/json.")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidJson("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object.")
    return value


@dataclass(slots=True)
class PlainReply:
    """A response outside the hot path."""

    status: int
    body: bytes
    headers: list[Header] = field(default_factory=list)


async def send(send: Send, status: int, headers: list[Header], body: bytes, *, head: bool = False) -> None:
    """Send a whole response, or only its headers if `head` is set."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
