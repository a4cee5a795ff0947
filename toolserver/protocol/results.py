"""Results of `tools/call` as bytes: an answer's own bytes inside what MCP puts around them, and failures."""

from typing import Any, NamedTuple

from toolserver import problems
from toolserver.documents import Facts
from toolserver.envelopes import BARE, frame_of
from toolserver.errors import CallRejected
from toolserver.payments.x402.headers import META_RESPONSE, REQUIRED, RESPONSE, unheader
from toolserver.pipeline import Outcome
from toolserver.protocol import wire
from toolserver.protocol.wire import encode
from toolserver.registry import Operation
from toolserver.rendering import Rendered, with_credits, with_credits_escaped

_SIGNED = {"receipt": "X-Service-Receipt", "receipt_id": "X-Service-Receipt-Id"}  # of a call that was not charged


class Result(NamedTuple):
    """The core of a result, and the members of its `_meta`."""

    core: bytes
    meta: dict[str, Any]
    failed: bool = False

    def end(self, *, modern: bool) -> bytes:
        """What closes it."""
        return wire.end_with(self.meta, modern=modern) if self.meta else wire.end(modern=modern)


def _content(escaped: bytes, payload: bytes, end: bytes = b',"isError":false') -> bytes:
    return b"".join((b'{"content":[{"type":"text","text":', escaped, b'}],"structuredContent":', payload, end))


def core_of(rendered: Rendered) -> bytes:
    """The core of a free call's result, made once per answer."""
    made: bytes | None = rendered.memo.get("mcp")
    if made is None:
        made = rendered.memo["mcp"] = _content(rendered.escaped, rendered.payload)
    return made


def result_of(operation: Operation, outcome: Outcome) -> Result:
    """The result of a call. The credits left stand in both copies of the payload and in the result's own `_meta`."""
    rendered, remaining = outcome.rendered, outcome.credits_remaining
    signed: dict[str, Any] = {}
    if outcome.receipt_id:
        signed = {"receipt": outcome.receipt, "receipt_id": outcome.receipt_id}
    if outcome.settlement is not None:
        signed[META_RESPONSE] = outcome.settlement
    if remaining is None:
        return Result(core_of(rendered), signed)
    if frame_of(operation) is BARE:
        payload = rendered.payload[:-1] + b',"_meta":{"credits_remaining":%d}}' % remaining
        core = _content(encode(payload.decode()), payload)
    else:
        core = _content(with_credits_escaped(rendered.escaped, remaining), with_credits(rendered.payload, remaining))
    return Result(core, {"credits_remaining": remaining, **signed})


def refused(rejected: CallRejected, facts: Facts, request_id: str) -> Result:
    """A failure of a call: REST's body as text. No structured content, which clients would hold against the schema;
    only an offer to pay (x402) has to be there too, where it is one object with the error.
    """
    body = problems.body(rejected.code, rejected.detail, facts=facts, request_id=request_id, **rejected.extra)
    told = rejected.headers
    meta: dict[str, Any] = {name: told[header] for name, header in _SIGNED.items() if header in told}
    if RESPONSE in told:
        meta[META_RESPONSE] = unheader(told[RESPONSE])
    if REQUIRED in told:
        written = encode(unheader(told[REQUIRED]) | body)
        return Result(_content(encode(written.decode()), written, b',"isError":true'), meta, True)
    text = encode(encode(body).decode())
    return Result(b'{"content":[{"type":"text","text":' + text + b'}],"isError":true', meta, True)
