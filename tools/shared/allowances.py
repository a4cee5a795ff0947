"""Show allowances as the account tools return them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, WithJsonSchema

from tools.shared.moments import MOMENT, add_zone, in_utc
from toolserver import AllowanceDetails, NotFound, Payload, Timestamp, ToolContext

MOST_LISTED, MOST_CREDITS = 200, 10**9
NEVER = datetime.max.replace(tzinfo=UTC)


def _as_end(end: Any) -> Any:
    """Read a time with a zone, or the word that removes the end. Numbers are refused, though
    some parsers take them for times.
    """
    if not isinstance(end, str):
        raise ValueError("must be a time such as 2027-01-15T08:00:00Z, or never")
    if end == "never":
        return NEVER
    return add_zone(end)


AllowanceId = Annotated[
    str,
    Field(
        pattern="^alw_[0-9a-f]{16}$",
        description="The id of an allowance, from allowance_create or allowance_list",
        examples=["alw_0123456789abcdef"],
    ),
]
End = Annotated[
    AwareDatetime,
    BeforeValidator(_as_end),
    AfterValidator(in_utc),
    WithJsonSchema({"anyOf": [MOMENT, {"type": "string", "enum": ["never"]}]}),
]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\u0000]*$")]
Tools = Annotated[list[str], Field(max_length=100)]


class AllowanceRecord(Payload):
    id: str = Field(description="The id of the allowance")
    name: str = Field(description="Your name for it")
    credits: int = Field(ge=1, description="Most credits it may ever spend")
    spent: int = Field(ge=0, description="Credits charged and reserved so far, less what was given back")
    spent_today: int = Field(ge=0, description="The same of this UTC day")
    credits_per_day: int | None = Field(description="Most credits per UTC day; null: no such cap")
    expires_at: Timestamp | None = Field(description="When it ends; null: never")
    tools: list[str] | None = Field(description="The tools it may call that cost credits; null: all")
    state: Literal["active", "exhausted", "expired", "revoked"] = Field(
        description="active: it pays; exhausted: the cap is spent; expired: its end is over; revoked: ended by you"
    )
    created_at: Timestamp = Field(description="When it was made")
    last_used_at: Timestamp | None = Field(description="When it last spent; null: never")
    service: str | None = Field(description="The service where it was made, at which alone it pays; null: everywhere")


def allowances_of(ctx: ToolContext) -> Any:
    """Return the allowances of this service. Raises NotFound where there are none."""
    allowances = getattr(ctx.host, "allowances", None)
    if allowances is None:
        raise NotFound("This server keeps no allowances.")
    return allowances


def allowance_fields(details: AllowanceDetails) -> dict[str, Any]:
    """Return the members of a record."""
    shown = details._asdict()
    del shown["token"]
    return shown
