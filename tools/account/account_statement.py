"""GET /api/payment/statement."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, WithJsonSchema

from tools.shared.moments import MOMENT, add_zone, in_utc
from toolserver import Payload, StatementLine, StatementRange, Tier, Timestamp, ToolContext, TopLevel, tool

MOST = 500
A_DAY = {"type": "string", "format": "date"}
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _as_time(value: Any) -> Any:
    """Read a day as its first moment, and a time without a zone as UTC. Numbers are refused, though some parsers take
    them.
    """
    if not isinstance(value, str):
        raise ValueError("must be a time such as 2027-01-15T08:00:00Z, or a day")
    if DAY.fullmatch(value):
        return f"{value}T00:00:00Z"
    return add_zone(value)


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_as_time),
    AfterValidator(in_utc),
    WithJsonSchema({"anyOf": [MOMENT, A_DAY]}),
]
Kind = Literal[
    "purchase",
    "top_up",
    "grant",
    "credit",
    "call",
    "reversal",
    "refund",
    "taken_back",
    "withheld",
    "released",
    "earlier_calls",
]


class StatementEntry(Payload):
    at: Timestamp = Field(description="When it happened")
    kind: Kind = Field(
        description="What happened; withheld: the payment is in doubt, until released; earlier_calls: those before `at`"
    )
    credits: int = Field(description="What it changed of what you can spend; negative for a call")
    call_id: str | None = Field(
        description="The call's request id; null unless a call or its reversal, as are the three below"
    )
    endpoint: str | None = Field(examples=["/api/pro/macro"], description="Path that was called; null: no call")
    state: Literal["open", "posted", "voided", "reversed"] | None = Field(
        description="open: still running; posted: charged; voided: not charged; reversed: given back; null: no call"
    )
    receipt_id: str | None = Field(description="GET /api/receipt/{id} shows it; null: there is none")
    no_charge_reason: str | None = Field(description="Why nothing was charged, or why it was given back; null: neither")
    allowance: str | None = Field(description="The allowance that made the call; null: this token did")
    transaction: str | None = Field(description="Hash of the USDC transfer of a purchase; null where there is none")


Way = Literal["transfer", "x402_topup", "x402_call", "other", "sent"]
PaymentState = Literal[
    "quoted", "pending", "credited", "second", "late", "short", "foreign", "held", "undone", "swept", "refunded"
]


class StatementPayment(Payload):
    at: Timestamp = Field(description="Time of its block")
    amount_usd: float = Field(description="USDC that you paid; negative: paid back to you")
    way: Way = Field(description="transfer: to the address of a quote; x402_topup: by a signature; sent: paid back")
    state: PaymentState = Field(
        description="quoted, late: nobody has confirmed it; pending: too few blocks; credited: it bought credits; "
        "second: the address was paid before; short: too little; held: in doubt; undone: gone from the chain; "
        "refunded: paid back"
    )
    state_since: Timestamp = Field(description="Since when it is in this state")
    transaction: str = Field(description="Hash of the transaction")


class AccountStatement(TopLevel):
    credits: int = Field(ge=0, description="What you can spend now; without an allowance the sum of all entries")
    entries: list[StatementEntry] = Field(max_length=MOST, description="The latest first")
    payments: list[StatementPayment] = Field(
        max_length=MOST, description="Your USDC on the chain, the latest first; only without a cursor"
    )
    next_cursor: str | None = Field(description="Give it as cursor to read on; null: there is nothing older")


@tool(
    path="/api/payment/statement",
    title="Account statement",
    search_hint="my credits spent spend on what history transactions this month bill",
    tier=Tier.ACCOUNT,
)
async def account_statement(
    ctx: ToolContext,
    from_: Annotated[
        Moment | None, Field(description="Earliest time, ISO 8601, or a day (UTC)", examples=["2027-01-01T00:00:00Z"])
    ] = None,
    to: Annotated[Moment | None, Field(description="First time that is left out, ISO 8601, or a day (UTC)")] = None,
    cursor: Annotated[
        str | None, Field(pattern="^[0-7][0-9a-f]{15}$", description="next_cursor of the page before")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=MOST, description="How many entries")] = 50,
) -> AccountStatement:
    """Everything that happened to the credits of this token, the latest first: calls with their receipts, purchases,
    and what was given back. Use payment_balance for the balance alone.

    Shape: an allowance sees its own calls only, and no payments. The credits of all entries add up to `credits` (for
    an allowance: to what it has spent). A call that was charged and then given back has two entries.
    Errors: not_found where the ledger belongs to a service that gives no statements.
    """
    page = await ctx.host.statements.read(ctx.token, StatementRange(from_, to, cursor, limit))
    return AccountStatement(
        credits=page.credits,
        entries=[_show(line) for line in page.lines],
        payments=[
            StatementPayment.model_validate(
                payment._asdict() | {"amount_usd": payment.amount / 1_000_000, "state_since": payment.since}
            )
            for payment in page.payments
        ],
        next_cursor=page.cursor,
    )


def _show(line: StatementLine) -> StatementEntry:
    return StatementEntry(
        at=line.at,
        kind=line.kind,
        credits=line.credits,
        call_id=line.call_id,
        endpoint=line.endpoint,
        state=line.state,
        receipt_id=line.receipt_id,
        no_charge_reason=line.reason,
        allowance=line.allowance,
        transaction=line.transaction,
    )
