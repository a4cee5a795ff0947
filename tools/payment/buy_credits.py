"""POST /api/payment/buy-credits."""

import re
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from toolserver import CREDIT_PRICE, Payload, Tier, Timestamp, ToolContext, TopLevel, tool

MOST_USD = 1_000_000
MOST_CREDITS = 10**9
NETWORK, TOKEN = "eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"


def _number(value: object) -> object:
    """Return a JSON number, or one of digits, as query strings and forms have it. Refuses true and "1_000"."""
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", value)):
        raise ValueError("must be a number")
    return value


Amount = Annotated[
    Decimal,
    BeforeValidator(_number),
    Field(ge=1, le=MOST_USD, decimal_places=6),
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": MOST_USD}),
]


class CreditQuote(Payload):
    amount_usd: float = Field(ge=1, description="Amount to pay, US dollars")
    credits: int = Field(ge=50, description="50 for each US dollar, rounded down")
    chain: Literal["base"] = Field(description="Chain to pay on")


class BuyCredits(TopLevel):
    wallet: str = Field(description="Send USDC here, in one transfer", examples=[f"0x{'0' * 36}1234"])
    memo: str = Field(description="A secret that claims the token; never put it on the chain")
    quote: CreditQuote = Field(description="What the amount buys")
    expires_at: Timestamp = Field(description="When the quote ends; a later payment is credited too, and called late")
    network: Literal["eip155:8453"] = Field(description="Chain to pay on, as CAIP-2")
    token_contract: str = Field(description="Contract of USDC on Base; no other token counts")
    amount_atomic: int = Field(description="The amount in millionths of a USDC")
    payment_uri: str = Field(description="The payment as a link for wallets (EIP-681)")
    memo_commitment: str = Field(description="Note to add to the payment, if you want one: this and not the memo")
    instructions: str = Field(description="How to pay and claim, in words")
    review: str | None = Field(
        None,
        description="Why a person would have to approve it: it exceeds what is sold in an hour or a day; null: no need",
    )


@tool(
    path="/api/payment/buy-credits",
    method="POST",
    title="Buy credits",
    search_hint="buy purchase dollars of credits pay USDC quote want to",
    tier=Tier.PAYMENT,
    toolset="core",
    quotas=((10, 60), (200, 1800)),
    changes_nothing=True,
)
async def payment_buy_credits(
    ctx: ToolContext,
    amount_usd: Annotated[Amount, Field(description=f"US dollars to convert, at most 6 decimals; {CREDIT_PRICE}")],
    claim_challenge: Annotated[
        str | None,
        Field(
            pattern="^[A-Za-z0-9_-]{43}$",
            description="Optional lock: base64url SHA-256 of a claim_verifier that confirm then requires",
        ),
    ] = None,
    credits_per_day: Annotated[int | None, Field(ge=1, le=MOST_CREDITS, description="Most credits per UTC day")] = None,
) -> BuyCredits:
    """A quote for credits: the address to send USDC to on Base, and the memo that claims them. Nothing is charged until
    you pay. After paying, call payment_confirm with the transaction hash and the memo to get a token.

    Shape: each quote has an address of its own. The amount that arrives is credited, whether more or less
    than was quoted.
    Errors: chain_unavailable when payments cannot be checked at the moment, not_found where none are taken.
    """
    quote = await ctx.host.payments.quote(amount_usd, challenge=claim_challenge, credits_per_day=credits_per_day)
    return BuyCredits(
        wallet=quote.wallet,
        memo=quote.memo,
        quote=CreditQuote(amount_usd=quote.amount / 1_000_000, credits=quote.credits, chain="base"),
        expires_at=quote.expires_at,
        network=NETWORK,
        token_contract=TOKEN,
        amount_atomic=quote.amount,
        payment_uri=quote.uri,
        memo_commitment=quote.commitment,
        instructions=f"Send {quote.amount / 1_000_000:.6f} USDC on Base in one transfer to {quote.wallet}. Keep the "
        "memo secret and off the chain. Then call payment_confirm (POST /api/payment/confirm) with the transaction's "
        "hash as tx_hash and the memo as nonce.",
        review=quote.review,
    )
