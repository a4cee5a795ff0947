"""A tool behind POST, so that request bodies can be tried on a running server."""

from toolserver.context.context import ToolContext
from toolserver.core.models import Payload
from toolserver.registry.registry import tool


class Posted(Payload):
    length: int


@tool(path="/api/posted", title="A body", method="POST")
async def posted(ctx: ToolContext, receipt: str) -> Posted:
    """How long a text is that was sent in the body of a request; it exists for tests of request bodies only."""
    return Posted(length=len(receipt))
