"""GET /api/internet-pulse."""

from typing import Annotated

import anyio
from pydantic import ConfigDict, Field, RootModel

from tools.sources.probe import TCP_CONNECT
from toolserver import CardValue, Payload, Picture, SourceDown, ToolContext, tool, up_to, via


class Target(Payload):
    name: str = Field(examples=["US East"], description="Cloud region or DNS service")
    latency_ms: int = Field(
        ge=-1, description="Median time of a TCP connect from this server, milliseconds; -1: unreachable"
    )


class InternetPulse(RootModel[list[Target]]):
    """The targets, in the order of the settings."""

    model_config = ConfigDict(frozen=True, defer_build=True)


@tool(
    path="/api/internet-pulse",
    title="Internet pulse",
    search_hint="is internet connection slow for me latency ping network speed",
    ttl_s=60,
    sources=(TCP_CONNECT,),
    headline=CardValue("0.latency_ms", "ms", "{0.name}"),
    pictures=(Picture("bars", "Round trip to each region", values=("latency_ms",), label="name", unit="ms"),),
)
async def internet_pulse(ctx: ToolContext, limit: Annotated[int, up_to(6)] = 6) -> InternetPulse:
    """How long this server takes to open a TCP connection to four cloud regions and two public DNS anycast addresses.
    Use it for "is the internet slow?"; for outages of named services use service_status.

    Shape: six entries; -1 means that none of three tries succeeded within two seconds. Nothing is downloaded.
    Source: measured by this server, once a minute at most.
    """
    measured: dict[str, int] = {}

    async def measure(name: str, host: str) -> None:
        latency = await ctx.section(f"data.{name}", via(TCP_CONNECT, host))
        if latency is not None:
            measured[name] = latency

    targets = ctx.host.probe_targets
    async with anyio.create_task_group() as tasks:
        for name, host in targets.items():
            tasks.start_soon(measure, name, host)
    if not measured:
        raise SourceDown("no target could be measured")
    if all(latency == -1 for latency in measured.values()):
        ctx.warn("data", "own_network_suspect", "No target answered: this server's own network is the likely cause.")
    measured_names = [name for name in targets if name in measured]
    return InternetPulse([Target(name=name, latency_ms=measured[name]) for name in ctx.page(measured_names, limit)])
