"""Write results of `tools/call` as bytes: an answer's own bytes wrapped for MCP, and failures."""

from typing import Any, NamedTuple

from toolserver.calls.pipeline import Outcome
from toolserver.calls.response import RenderedResponse, with_credits, with_credits_escaped
from toolserver.errors import CallRejected
from toolserver.mcp import messages
from toolserver.mcp.call_arguments import next_step
from toolserver.mcp.messages import encode
from toolserver.money.x402.wire import META_RESPONSE, REQUIRED, RESPONSE, unheader
from toolserver.registry import error_codes
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import BARE, frame_of
from toolserver.registry.site_facts import SiteFacts

_SIGNED = {"receipt": "X-Service-Receipt", "receipt_id": "X-Service-Receipt-Id"}  # for a call that was not charged


class ToolResult(NamedTuple):
    """The core of a result, and the members of its `_meta`."""

    core: bytes
    meta: dict[str, Any]
    failed: bool = False

    def end(self, *, modern: bool) -> bytes:
        """Return the bytes that close the result."""
        return messages.end_with(self.meta, modern=modern) if self.meta else messages.end(modern=modern)


def _content(escaped: bytes, payload: bytes, end: bytes = b',"isError":false') -> bytes:
    return b"".join((b'{"content":[{"type":"text","text":', escaped, b'}],"structuredContent":', payload, end))


def render_core(rendered: RenderedResponse) -> bytes:
    """Return the core of a free call's result, made once per answer."""
    made: bytes | None = rendered.memo.get("mcp")
    if made is None:
        made = rendered.memo["mcp"] = _content(rendered.escaped, rendered.payload)
    return made


def render_result(operation: Operation, outcome: Outcome) -> ToolResult:
    """Return the result of a call. Both copies of the payload and the result's own `_meta` have the credits left."""
    rendered, remaining = outcome.rendered, outcome.credits_remaining
    signed: dict[str, Any] = {}
    if outcome.receipt is not None:
        signed = {"receipt": outcome.receipt, "receipt_id": outcome.receipt_id}
    elif outcome.receipt_id is not None:  # requested by reference: the hash that the receipt signs
        signed = {"receipt_id": outcome.receipt_id, "response_sha256": rendered.sha256(remaining).hex()}
    if outcome.settlement is not None:
        signed[META_RESPONSE] = outcome.settlement
    if remaining is None:
        return ToolResult(render_core(rendered), signed)
    if frame_of(operation) is BARE:
        payload = rendered.payload[:-1] + b',"_meta":{"credits_remaining":%d}}' % remaining
        core = _content(encode(payload.decode()), payload)
    else:
        core = _content(with_credits_escaped(rendered.escaped, remaining), with_credits(rendered.payload, remaining))
    return ToolResult(core, {"credits_remaining": remaining, **signed})


def render_failure(rejected: CallRejected, facts: SiteFacts, request_id: str) -> ToolResult:
    """Return a failure of a call: REST's body as text, and the tool that helps.

    There is no structured content, which clients would check against the schema. The exception is an offer to pay
    (x402), which must be there as one object with the error.
    """
    extra = rejected.extra | next_step(rejected.code)
    body = error_codes.body(rejected.code, rejected.detail, facts=facts, request_id=request_id, **extra)
    told = rejected.headers
    meta: dict[str, Any] = {name: told[header] for name, header in _SIGNED.items() if header in told}
    if RESPONSE in told:
        meta[META_RESPONSE] = unheader(told[RESPONSE])
    if REQUIRED in told:
        written = encode(unheader(told[REQUIRED]) | body)
        return ToolResult(_content(encode(written.decode()), written, b',"isError":true'), meta, True)
    text = encode(encode(body).decode())
    return ToolResult(b'{"content":[{"type":"text","text":' + text + b'}],"isError":true', meta, True)
