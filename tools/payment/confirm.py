"""POST /api/payment/confirm."""

import json
from typing import Annotated, Any

from pydantic import Field

from tools.payment.next_step import SPEND, NextStep
from toolserver import Claim, Tier, ToolContext, TopLevel, tool

HASH, MEMO, SIGNATURE = "^(0[xX])?[0-9a-fA-F]{64}$", "^svc_buy_[0-9a-f]{32}$", "^0x([0-9a-fA-F]{2}){65,2048}$"


def shaped(pattern: str) -> Any:
    """Tell callers the format of a text. The text is judged where it is read, with an error that says what is wrong."""
    return Field(json_schema_extra={"pattern": pattern})


class ConfirmPayment(TopLevel):
    token: str = Field(description="Bearer token, a secret; shown once more only if it is not used yet")
    credits: int = Field(ge=1, description="Credits on the token")
    late: bool = Field(description="Paid after the quote's end, and credited all the same")
    next: NextStep = Field(description="What to call with the token")


@tool(
    path="/api/payment/confirm",
    method="POST",
    title="Confirm a payment",
    search_hint="I paid sent USDC here is my transaction hash confirm claim token",
    tier=Tier.PAYMENT,
    toolset="core",
    deadline_s=30,
    tags={"example_arguments": json.dumps({"tx_hash": f"0x{'5d' * 32}", "nonce": f"svc_buy_{'0c' * 16}"})},
)
async def payment_confirm(
    ctx: ToolContext,
    tx_hash: Annotated[str, Field(description="Hash of the USDC transfer on Base"), shaped(HASH)],
    nonce: Annotated[str, Field(description="The memo from payment_buy_credits"), shaped(MEMO)],
    claim_verifier: Annotated[
        str | None, Field(max_length=128, description="Only if the quote was asked for with claim_challenge")
    ] = None,
    payer_signature: Annotated[
        str | None,
        Field(max_length=4100, description="Only if payer_proof_required asked for it"),
        shaped(SIGNATURE),
    ] = None,
) -> ConfirmPayment:
    """Turn a payment into a bearer token with credits: call it after sending USDC to the address of a quote. Waits some
    seconds for the chain; on payment_pending, call it again with the same arguments. Each payment counts once.

    Shape: when the answer is lost, the same call gives the same token for 15 minutes, until the token is used.
    Errors: payment_pending, no_matching_transfer, below_minimum, already_credited, payer_proof_required,
    chain_unavailable; not_found for a memo that was never given out.
    """
    bought = await ctx.host.payments.confirm(Claim(tx_hash, nonce, claim_verifier, payer_signature))
    return ConfirmPayment(token=bought.token, credits=bought.credits, late=bought.late, next=SPEND)
