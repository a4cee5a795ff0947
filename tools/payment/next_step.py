"""Tell a model what to do with a newly bought token: the words that lead from a payment to the first paid answer."""

from pydantic import Field

from toolserver import Payload


class NextStep(Payload):
    """The tool to call next, and how."""

    tool: str = Field(description="Tool to call next")
    how: str = Field(description="How to call it, in one sentence")


SPEND = NextStep(
    tool="premium_briefing",
    how="Call it, or any other premium tool, with the header `Authorization: Bearer <token>`; over MCP, if the"
    " connection sends no such header, with the argument `token`.",
)
"""After a token was sold."""
PREPAID_CALLS, DEAREST_CREDITS = 5, 2  # a balance that covers fewer calls at the highest price is low
