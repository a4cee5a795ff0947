"""GET /api/service-status."""

from typing import Annotated

from pydantic import RootModel

from tools.shared.status import PAGES, STATUS_SOURCES, ServiceItem, check_pages
from toolserver import CardValue, Picture, ToolContext, tool, up_to


class Services(RootModel[list[ServiceItem]]):
    """In a fixed order."""


@tool(
    path="/api/service-status",
    title="Service status",
    search_hint="is it down outage incident again working broken GitHub OpenAI Claude AWS",
    toolset="core",
    ttl_s=60,
    stale_share=0.25,
    sources=STATUS_SOURCES,
    headline=CardValue("0.status", "", "{0.name}"),
    pictures=(Picture("grid", "State of each service", values=("status",), label="name", time="checked_at"),),
)
async def service_status(ctx: ToolContext, limit: Annotated[int, up_to(15)] = 15) -> Services:
    """Whether 15 cloud and developer services are up right now, by their own status pages: GitHub, Cloudflare, OpenAI,
    Anthropic, Vercel, Discord, Atlassian, Reddit, Stripe, Zoom, Datadog, Slack, AWS, Google Cloud and Azure.
    Use it for "is GitHub down?".

    Shape: always all 15 in this order. A page that does not answer is `unknown` with "status page unreachable",
    after its last answer has been shown, marked stale, for 15 minutes (AWS, Google Cloud and Azure: 30).
    `degraded` is also any open event that the page does not call an outage.
    Source: the status pages themselves, asked at most once a minute.
    """
    return Services(ctx.page(await check_pages(ctx, PAGES, "data"), limit))
