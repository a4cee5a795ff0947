"""GET /api/payment/no-charge-stats."""

import re
from datetime import date as Date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from toolserver import NotFound, Payload, ToolContext, TopLevel, tool

EVENTS, DAYS = 200, 1000


def _written(day: Any) -> Any:
    """Read a written day. Numbers are refused, though some parsers take them for seconds."""
    if not isinstance(day, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", day):
        raise ValueError("must be YYYY-MM-DD")
    return day


Day = Annotated[Date, BeforeValidator(_written)]


class NoChargeEvent(Payload):
    seq: int | None = Field(ge=0, description="Its leaf in the log; null: its hour is not in the log yet")
    ts: str = Field(description="When it happened, UTC, with milliseconds", examples=["2027-01-15T08:00:00.000Z"])
    reason: str = Field(examples=["stale_data"], description="Code for why nothing was charged")
    endpoint: str = Field(description="Path that was called")
    credits: int = Field(ge=0, description="Credits that it would have cost")
    receipt_sha256: str | None = Field(description="SHA-256 of the receipt's core; null: no receipt was fetched")


class NoChargeDay(Payload):
    date: Date = Field(description="Day, UTC")
    count: int = Field(ge=1, description="Calls that were not charged on it")


class LogState(Payload):
    origin: str = Field(description="Name of the log, in its checkpoints")
    size: int = Field(ge=0, description="Leaves in the log")
    root: str = Field(description="Merkle root of the log, base64")
    waiting: int = Field(ge=0, description="Calls that are booked and will be in the log when their hour is over")


class NoChargeStats(TopLevel):
    date: Date = Field(description="Day that is counted, UTC")
    count: int = Field(ge=0, description="Calls not charged on that day")
    credits_skipped: int = Field(ge=0, description="Credits that these calls would have cost")
    by_reason: dict[str, int] = Field(description="Calls by the code for why nothing was charged")
    by_endpoint: dict[str, int] = Field(description="Calls by the path that was called")
    events: list[NoChargeEvent] = Field(max_length=EVENTS, description="The last ones, newest first")
    log: LogState = Field(description="The log that gets every event when its hour is over, as it was last signed")
    dates: list[NoChargeDay] | None = Field(max_length=DAYS, description="Null unless asked for; the last day first")


@tool(
    path="/api/payment/no-charge-stats",
    title="Calls that were not charged",
    search_hint="failed calls not charged billed refunded free how many did",
    ttl_s=30,
    spaced=False,
    quotas=((60, 60),),
)
async def payment_no_charge_stats(
    ctx: ToolContext,
    date: Annotated[Day | None, Field(description="A day, UTC; today by default")] = None,
    dates: Annotated[bool, Field(description="Also list the days there is anything about")] = False,
) -> NoChargeStats:
    """Paid calls of a day that were not charged, by reason and endpoint, with the last 200 of them and the state of the
    public log that holds them all. Use receipt_verify for a single call.

    Shape: no token and no caller is named. A call that failed, held stale data or came to nothing has an event of its
    own; while the ledger is away, or when callers hang up, one event stands for a caller's calls within a minute.
    Events count at once; the log gets them when their hour is over, one leaf for each token, tool and reason.
    """
    evidence = ctx.host.evidence
    if evidence is None:
        raise NotFound("This instance keeps no statistics of uncharged calls.")
    statistics = await evidence.no_charge(date or ctx.now.date())
    listed = [{"date": day, "count": count} for day, count in await evidence.no_charge_days()] if dates else None
    return NoChargeStats.model_validate({**statistics, "dates": listed})
