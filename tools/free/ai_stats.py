"""GET /api/ai-stats."""

from typing import Annotated, Literal

from pydantic import Field

from toolserver import Payload, Timestamp, ToolContext, tool, up_to

SHOWN = 20


class Agent(Payload):
    name: str = Field(examples=["ClaudeBot"], description="Family of User-Agents, as far as it is recognised")
    hits: int = Field(ge=1, description="Calls by this family")


class RecentCall(Payload):
    endpoint: str = Field(description="Tool that was called")
    agent: str = Field(description="Family of User-Agents of the caller")
    at: Timestamp = Field(description="To the minute")
    status: int = Field(description="HTTP status of the answer")
    tier: str = Field(description="Price tier of the tool: free, premium, payment or account")


class AiStats(Payload):
    window: Literal["24h"] = Field(description="Time that is counted: the past 24 hours")
    total_hits: int = Field(ge=0, description="Calls over REST and MCP")
    unique_agents: int = Field(ge=0, description="Families of User-Agents seen")
    agents: list[Agent] = Field(max_length=SHOWN, description="Most calls first")
    recent_calls: list[RecentCall] = Field(max_length=SHOWN, description="Newest first")
    since: Timestamp = Field(description="Start of the counting, when less than 24 hours ago")


@tool(
    path="/api/ai-stats",
    title="Who calls this service",
    search_hint="who is using this server usage statistics callers users traffic",
    ttl_s=30,
)
async def ai_stats(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> AiStats:
    """How often this service was called in the past 24 hours, by which families of agents, and the last calls. Use it
    to see who uses the service; it says nothing about the world outside.

    Shape: no address, token, argument or text of a caller is stored or shown.
    Source: this service's own counters, kept in hours so that a restart does not reset them.
    """
    counted = ctx.host.usage.counted()
    recent = ctx.page(counted.recent, limit, "data.recent_calls")
    agents = ctx.page(list(counted.agents.items())[:SHOWN], limit, "data.agents")
    return AiStats(
        window="24h",
        total_hits=counted.total,
        unique_agents=len(counted.agents),
        agents=[Agent(name=name, hits=hits) for name, hits in agents],
        recent_calls=[RecentCall(**call._asdict()) for call in recent],
        since=counted.since,
    )
