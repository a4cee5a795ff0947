"""GET /api/health."""

from typing import Literal

from pydantic import Field

from toolserver import Payload, ToolContext, TopLevel, tool

Status = Literal["ok", "degraded"]


class HealthData(Payload):
    status: Status = Field(description="degraded: storage cannot be written")
    version: str = Field(description="Version of the API")
    uptime: int = Field(ge=0, description="Seconds since the process started")
    ts: int = Field(description="Now, Unix milliseconds")


class Health(TopLevel):
    """The four members stand in `data` and beside it: the specification's table can be read either way."""

    data: HealthData = Field(description="The same four values as beside it")
    status: Status = Field(description="degraded: storage cannot be written")
    version: str = Field(description="Version of the API")
    uptime: int = Field(ge=0, description="Seconds since the process started")
    ts: int = Field(description="Now, Unix milliseconds")


@tool(
    path="/api/health",
    title="Service health",
    search_hint="is this server API up alive which version uptime ping",
    spaced=False,
)
async def health(ctx: ToolContext) -> Health:
    """Whether this service is up, its API version, its uptime in seconds and its clock. Never depends on upstreams:
    use service_status for the state of other services.

    Shape: `status` is "degraded" when storage cannot be written.
    """
    data = HealthData(
        status="ok" if ctx.host.storage_writable() else "degraded",
        version=ctx.host.version,
        uptime=ctx.host.uptime_s,
        ts=int(ctx.now.timestamp() * 1000),
    )
    return Health(data=data, **data.model_dump())
