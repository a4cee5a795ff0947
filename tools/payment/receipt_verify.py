"""POST /api/receipt/verify."""

import json
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from toolserver import InvalidArguments, NotFound, Payload, Sparse, ToolContext, TopLevel, tool

MOST_BYTES = 16_384
TEXT = {"type": "string"}
SIGNED_TEXT = TEXT | {"maxLength": MOST_BYTES, "pattern": r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$"}
SIGNED_OBJECT = {
    "type": "object",
    "properties": {
        "signature": TEXT | {"description": "The receipt as a JWS"},
        "key_id": TEXT | {"description": "Name of the key that signed it"},
    },
    "required": ["signature", "key_id"],
}
SIGNED_EXAMPLE = {
    "v": 1,
    "id": f"rcpt_{'0' * 32}",
    "service": "data.example",
    "kind": "call",
    "call_id": "req_0123456789abcdef",
    "token_fp": "0" * 16,
    "endpoint": "/api/pro/briefing",
    "method": "GET",
    "request_hash": "0" * 64,
    "status": 200,
    "response_sha256": "0" * 64,
    "response_bytes": 4096,
    "cost": 1,
    "credits_charged": 1,
    "balance_after": 249,
    "settlement": "charged",
    "no_charge_reason": None,
    "captured_at": None,
    "freshness_sla_s": 600,
    "agent_nonce": None,
    "log": None,
    "issued_at": "2026-01-15T07:30:00.000Z",
    "key_id": "example",
    "signature": "ZXhhbXBsZQ",
}
"""The form of a receipt. No key has signed it, so its verdict is `valid: false`."""


class ReceiptChecks(Payload):
    format: bool | None = Field(description="It is written as a receipt is; null: not checked")
    key_known: bool | None = Field(description="Its key is one of those trusted here; null: an earlier check failed")
    signature: bool | None = Field(description="The key did sign it; null: an earlier check failed")
    key_time: bool | None = Field(
        description="The key was in use then, and is not revoked; null: an earlier check failed"
    )
    body: bool | None = Field(description="It is about the body whose hash was given; null: none was")
    in_log: bool | None = Field(description="The log of uncharged calls has it; null: it names no place there")


class ReceiptVerdict(Sparse, TopLevel):
    valid: bool = Field(description="No check failed")
    checks: ReceiptChecks = Field(description="Each check; null: it was not asked for, or an earlier one failed")
    key_id: str | None = Field(description="Name of the key that signed it; null: it names none")
    core: dict[str, Any] | None = Field(description="What the receipt says; null unless the signature is good")
    error: str | None = Field(None, description="Why it is not valid; absent when it is")


@tool(
    path="/api/receipt/verify",
    method="POST",
    title="Verify a receipt",
    search_hint="is this a real genuine receipt valid check signature proof",
    spaced=False,
    quotas=((60, 60),),
    tags={"example_arguments": json.dumps({"receipt": SIGNED_EXAMPLE})},
)
async def receipt_verify(
    ctx: ToolContext,
    receipt: Annotated[
        str | dict[str, Any],
        WithJsonSchema({"anyOf": [SIGNED_TEXT, SIGNED_OBJECT]}),
        Field(description="The JWS of the header or of `_meta`, or the object with `signature` and `key_id`"),
    ],
    body_sha256: Annotated[
        str | None,
        Field(pattern="^[0-9a-fA-F]{64}$", description="SHA-256 of the body you got, hex, to compare"),
    ] = None,
) -> ReceiptVerdict:
    """Whether the receipt of a paid call is genuine, what it says, and whether it belongs to the body you have. Nothing
    is fetched: keys come from a fixed list. Use payment_no_charge_stats for all calls of a day.

    Shape: a receipt that is not genuine is an answer with `valid` false, not an error.
    Errors: 400 for what is not a receipt at all.
    """
    evidence = ctx.host.evidence
    if evidence is None:
        raise NotFound("This instance does not issue receipts.")
    if _size(receipt) > MOST_BYTES:
        message = f"must have at most {MOST_BYTES} bytes"
        errors = [{"loc": "receipt", "msg": message, "type": "too_long"}]
        raise InvalidArguments(f"receipt: {message}", errors=errors)
    verdict = ReceiptVerdict.model_validate(await evidence.verify(receipt, body_sha256))
    if not verdict.checks.format:
        errors = [{"loc": "receipt", "msg": str(verdict.error), "type": "value_error"}]
        raise InvalidArguments(f"receipt: {verdict.error}", errors=errors)
    return verdict


def _size(receipt: str | dict[str, Any]) -> int:
    try:
        return len(receipt if isinstance(receipt, str) else json.dumps(receipt))
    except RecursionError:
        return MOST_BYTES + 1
