"""Tools without a source, for clients that need one with arguments, one with a price and one that takes its time."""

from typing import Annotated

import anyio
from pydantic import Field

from toolserver.context.context import ToolContext
from toolserver.core.models import Payload
from toolserver.registry.registry import Tier, tool


class Said(Payload):
    text: str
    length: int = Field(ge=0)


@tool(path="/api/sample/echo", title="Sample echo", ttl_s=60, toolset="core")
async def sample_echo(ctx: ToolContext, text: Annotated[str, Field(max_length=100, description="What to say")]) -> Said:
    """Your own text, to try out a client. Use sample_oracle to try out a payment."""
    return Said(text=text, length=len(text))


@tool(path="/api/pro/sample/oracle", title="Sample oracle", ttl_s=60, toolset="core", tier=Tier.PREMIUM, credits=2)
async def sample_oracle(ctx: ToolContext, question: str = "why") -> Said:
    """The answer to any question, to try out a payment. Use sample_echo for a call without one."""
    return Said(text=f"42, if the question is {question}", length=2)


@tool(path="/api/pro/sample/slow", title="Sample of patience", toolset="all", tier=Tier.PREMIUM, credits=2)
async def sample_slow(ctx: ToolContext, seconds: Annotated[float, Field(ge=0, le=5)] = 1.0) -> Said:
    """An answer that takes its time, to try out what happens when nobody waits for it. Use sample_oracle otherwise."""
    await anyio.sleep(seconds)
    return Said(text="at last", length=7)
