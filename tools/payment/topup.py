"""POST /api/payment/topup."""

from typing import Annotated, Literal

from pydantic import Field

from tools.payment.buy_credits import NETWORK, Amount
from tools.payment.next_step import SPEND, NextStep
from toolserver import CREDIT_PRICE, NotFound, Tier, ToolContext, TopLevel, atomic, tool


class TopUp(TopLevel):
    token: str = Field(description="Bearer token with the credits, a secret: a new one, or the one sent along")
    credits: int = Field(ge=1, description="Credits that this payment added")
    transaction: str = Field(description="Hash of the USDC transfer")
    network: Literal["eip155:8453"] = Field(description="Chain of the payment, as CAIP-2")
    next: NextStep = Field(description="What to call with the token")


@tool(
    path="/api/payment/topup",
    method="POST",
    title="Top up by x402",
    search_hint="x402 top up recharge add credits wallet",
    tier=Tier.PAYMENT,
    quotas=((30, 60),),
    deadline_s=60,
)
async def payment_topup(
    ctx: ToolContext,
    amount_usd: Annotated[Amount, Field(description=f"US dollars to convert, at most 6 decimals; {CREDIT_PRICE}")],
    payer_signature: Annotated[
        str | None, Field(max_length=140, description="Only if payer_proof_required asked for it; 0x and hex digits")
    ] = None,
) -> TopUp:
    """Credits for one signed USDC payment (x402), in one round trip: on the bearer token sent along, else on a new one.
    Needs an x402 wallet; without one use payment_buy_credits.

    Shape: called without a payment it fails with payment_required and says what to sign. Each payment counts once.
    Errors: payment_required, settlement_pending (send the same payment again), payer_proof_required, already_credited,
    chain_unavailable when payments cannot be made at the moment, not_found where none are taken.
    """
    topups = getattr(ctx.host, "x402", None)  # not every host takes such payments
    if topups is None:
        raise NotFound("This server does not accept x402 payments.")
    bought = await topups.buy(atomic(amount_usd), ctx.caller, signature=payer_signature)
    return TopUp(
        token=bought.token, credits=bought.credits, transaction=f"0x{bought.tx.hex()}", network=NETWORK, next=SPEND
    )
