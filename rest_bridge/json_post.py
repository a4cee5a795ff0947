"""Answers POST requests that only this service's pages send: JSON object in, JSON object out, the usual refusals."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from rest_bridge import headers as h
from rest_bridge.asgi import Header, ParsedRequest, Receive, Scope, Send, body_of, from_body, parse_request, send
from rest_bridge.routes import Mounted
from toolserver.calls.response import json_bytes
from toolserver.core import tracing
from toolserver.core.caller import new_request_id
from toolserver.errors import CallRejected, InternalError, MethodNotAllowed
from toolserver.registry import error_codes
from toolserver.registry.site_facts import SiteFacts

log = logging.getLogger(__name__)

MOST_BYTES = 1000


class JsonReply(NamedTuple):
    """The members of an answer, with headers of its own."""

    members: Mapping[str, Any]
    headers: tuple[Header, ...] = ()


Answer = Callable[[Scope, ParsedRequest, dict[str, Any]], Awaitable[Mapping[str, Any] | JsonReply]]
"""Answers a request from the members of its body. Raises CallRejected."""


def json_post(answer: Answer, facts: SiteFacts, *, most_bytes: int = MOST_BYTES) -> Mounted:
    """Return an ASGI callable that answers only POST, with a body of at most `most_bytes`."""

    async def read(scope: Scope, receive: Receive) -> JsonReply:
        if scope["method"] != "POST":
            raise MethodNotAllowed("This address accepts only POST.", headers={"Allow": "POST"})
        request = parse_request(scope)
        members = from_body(await body_of(receive, request, most_bytes), request.content_type)
        found = await answer(scope, request, members)
        return found if isinstance(found, JsonReply) else JsonReply(found)

    always = h.HeaderBook(facts).always

    async def handle(scope: Scope, receive: Receive, send_: Send) -> None:
        request_id = new_request_id()
        tracing.request_id.set(request_id)
        status, media_type = 200, h.JSON_TYPE
        headers = [*always, h.NO_STORE, (b"x-request-id", request_id.encode())]
        try:
            reply = await read(scope, receive)
            body, headers = json_bytes(reply.members), [*headers, *reply.headers]
        except CallRejected as rejected:
            status, media_type, body = rejected.status, h.PROBLEM_TYPE, _refusal(rejected, facts, request_id)
            headers += [(name.lower().encode(), value.encode()) for name, value in rejected.headers.items()]
        except Exception:
            log.exception("a request failed", extra={"path": scope["path"], "request_id": request_id})
            failed = InternalError("Something went wrong on our side. Include the request id if you report it.")
            status, media_type, body = 500, h.PROBLEM_TYPE, _refusal(failed, facts, request_id)
        await send(send_, status, [media_type, *headers, (b"content-length", b"%d" % len(body))], body)

    return handle


def _refusal(rejected: CallRejected, facts: SiteFacts, request_id: str) -> bytes:
    body = error_codes.body(rejected.code, rejected.detail, facts=facts, request_id=request_id, **rejected.extra)
    return json_bytes(body)
