"""A tool that refuses with any code, and whose answer has the names of a refusal's members for other things."""

from typing import Annotated, Literal

from pydantic import Field

from toolserver.context.context import ToolContext
from toolserver.core.models import Payload
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Tier, tool


class Confusing(Payload):
    type: int | None = Field(description="No address")
    title: list[str] = Field(description="No text")
    status: Literal["ok", "degraded"] = Field(description="No number")
    detail: dict[str, int] = Field(description="No sentence")
    error: int = Field(description="No code")


@tool(path="/api/pro/sample/refusal", title="Sample refusal", toolset="core", tier=Tier.PREMIUM, credits=1)
async def sample_refusal(ctx: ToolContext, code: Annotated[str, Field(description="An error code")]) -> Confusing:
    """A refusal with the code of your choice, to try out how a host shows it. Use health to see an answer."""
    raise PROBLEMS[code](f"This is what {code} says.")
