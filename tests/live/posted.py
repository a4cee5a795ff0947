"""A tool that takes a JSON body, so that bodies can be tried out."""

from typing import Annotated

from pydantic import Field

from toolserver.context.context import ToolContext
from toolserver.core.models import Payload
from toolserver.registry.registry import tool


class Posted(Payload):
    text: str


@tool(path="/api/posted", title="Posted", method="POST")
async def posted(ctx: ToolContext, text: Annotated[str, Field(max_length=100, description="What to say")]) -> Posted:
    """Your own text, sent by POST, to try out how bodies are read; for tests only."""
    return Posted(text=text)
