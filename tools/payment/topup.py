"""POST /api/payment/topup."""

from typing import Annotated, Literal

from pydantic import Field

from tools.payment.buy_credits import NETWORK, Amount
from tools.payment.confirm import HASH, MEMO, shaped
from tools.payment.next_step import SPEND, NextStep
from toolserver import (
    CREDIT_PRICE,
    Claim,
    InvalidArguments,
    Payload,
    Tier,
    Timestamp,
    ToolContext,
    TopLevel,
    atomic,
    tool,
)


class Transfer(Payload):
    """What to pay, by a plain transfer."""

    wallet: str = Field(description="Send USDC here, in one transfer")
    memo: str = Field(description="A secret: it claims the credits for the token. Never put it on the chain")
    amount_atomic: int = Field(description="The amount in 0.000001 USDC")
    payment_uri: str = Field(description="The payment for wallets (EIP-681)")
    expires_at: Timestamp = Field(description="Until when the quote holds; later payments may be refused")
    review: str | None = Field(description="Why a person would have to approve the payment; null: nobody has to")


class TopUp(TopLevel):
    token: str = Field(description="Bearer token with the credits, a secret: a new one, or the one sent along")
    credits: int = Field(ge=1, description="Credits that this payment added, or that `transfer` would add")
    transaction: str | None = Field(description="Hash of the USDC transfer; null: not paid yet")
    network: Literal["eip155:8453"] = Field(description="Chain of the payment, as CAIP-2")
    transfer: Transfer | None = Field(description="What to pay; null once it is paid")
    next: NextStep = Field(description="What to call with the token")


@tool(
    path="/api/payment/topup",
    method="POST",
    title="Top up",
    search_hint="x402 top up recharge add credits wallet",
    tier=Tier.PAYMENT,
    quotas=((30, 60),),
    deadline_s=60,
    tags={"takes_token": "true"},
)
async def payment_topup(
    ctx: ToolContext,
    amount_usd: Annotated[
        Amount | None, Field(description=f"US dollars to convert, at most 6 decimals; {CREDIT_PRICE}", examples=[5])
    ] = None,
    payer_signature: Annotated[
        str | None, Field(max_length=4100, description="Only if payer_proof_required asked for it; 0x and hex digits")
    ] = None,
    by_transfer: Annotated[
        bool, Field(description="Pay by a plain transfer of USDC; where no x402 is taken that is the only way")
    ] = False,
    tx_hash: Annotated[
        str | None, Field(description="After a transfer, with nonce: its hash on Base"), shaped(HASH)
    ] = None,
    nonce: Annotated[str | None, Field(description="After a transfer: the memo of its quote"), shaped(MEMO)] = None,
) -> TopUp:
    """Add credits to the bearer token sent along. With an x402 wallet it takes one round trip, which without a token
    gives a new one. By a plain transfer it takes two calls: with amount_usd for what to pay, then with tx_hash and
    nonce. To buy a new token by transfer use payment_buy_credits.

    Shape: for x402, a call without a payment fails with payment_required and says what to sign. Each payment counts
    once.
    Errors: payment_required, settlement_pending (send the same payment again), missing_token for a transfer,
    payment_pending (send the same claim again), no_matching_transfer, below_minimum, payer_proof_required,
    already_credited, chain_unavailable when payments cannot be made at the moment, not_found where none are taken.
    """
    claims = tx_hash is not None and nonce is not None
    if claims == (amount_usd is not None) or (tx_hash is None) != (nonce is None):
        message = "give amount_usd, or after a transfer tx_hash and nonce"
        errors = [{"loc": "amount_usd", "msg": message, "type": "value_error"}]
        raise InvalidArguments(f"amount_usd: {message}", errors=errors)
    if tx_hash is not None and nonce is not None:
        return await _claim_transfer(ctx, Claim(tx_hash, nonce, None, payer_signature))
    assert amount_usd is not None
    signed = getattr(ctx.host, "x402", None)  # not every host takes such payments
    if by_transfer or signed is None:
        return await _quote_transfer(ctx, amount_usd)
    bought = await signed.buy(atomic(amount_usd), ctx.caller, signature=payer_signature)
    return TopUp(
        token=bought.token,
        credits=bought.credits,
        transaction=f"0x{bought.tx.hex()}",
        network=NETWORK,
        transfer=None,
        next=SPEND,
    )


async def _quote_transfer(ctx: ToolContext, amount_usd: Amount) -> TopUp:
    """Return what to pay for credits on the caller's token."""
    quote = await ctx.host.payments.quote_topup(ctx.caller and ctx.caller.token, amount_usd)
    then = NextStep(
        tool="payment_topup",
        how=f"Send {quote.amount / 1_000_000:.6f} USDC on Base in one transfer to {quote.wallet}, then call it with the"
        " same token, the transaction's hash as tx_hash and the memo as nonce.",
    )
    return TopUp(
        token=ctx.token,
        credits=quote.credits,
        transaction=None,
        network=NETWORK,
        transfer=Transfer(
            wallet=quote.wallet,
            memo=quote.memo,
            amount_atomic=quote.amount,
            payment_uri=quote.uri,
            expires_at=quote.expires_at,
            review=quote.review,
        ),
        next=then,
    )


async def _claim_transfer(ctx: ToolContext, claim: Claim) -> TopUp:
    """Add the credits of a transfer to the caller's token."""
    bought = await ctx.host.payments.confirm_topup(ctx.caller and ctx.caller.token, claim)
    return TopUp(
        token=bought.token,
        credits=bought.credits,
        transaction=f"0x{claim.tx_hash.lower().removeprefix('0x')}",
        network=NETWORK,
        transfer=None,
        next=SPEND,
    )
