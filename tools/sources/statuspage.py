"""Read status pages with the Statuspage interface: Atlassian's own and those that imitate it (JSON, no key).

https://www.githubstatus.com/api
"""

from typing import Any, Literal, NamedTuple, cast, get_args

from tools.parsing.fields import clean
from tools.sources.hosts import MINUTE, STATUS
from toolserver import Get, Licence, Source, SourceChanged

Indicator = Literal["none", "minor", "major", "critical", "maintenance"]

HOSTS = {
    "GitHub": "www.githubstatus.com",
    "Cloudflare": "www.cloudflarestatus.com",
    "OpenAI": "status.openai.com",
    "Anthropic": "status.claude.com",
    "Vercel": "www.vercel-status.com",
    "Discord": "discordstatus.com",
    "Atlassian": "status.atlassian.com",
    "Reddit": "www.redditstatus.com",
    "Stripe": "www.stripestatus.com",
    "Zoom": "www.zoomstatus.com",
    "Datadog": "status.datadoghq.com",
}


class PageSummary(NamedTuple):
    """The page's own verdict, and its description."""

    indicator: Indicator
    description: str


def parse(body: Any, query: None) -> PageSummary:
    """Return `status` of status.json or summary.json. `page.updated_at` may be months old and is ignored."""
    indicator = body["status"]["indicator"]
    if indicator not in get_args(Indicator):
        raise SourceChanged(f"indicator is {indicator!r:.40}")
    description = body["status"].get("description")
    return PageSummary(cast("Indicator", indicator), clean(description) if isinstance(description, str) else "")


def statuspage(slug: str) -> Source[None, PageSummary]:
    """Return the source of a service's page."""
    host = HOSTS[slug]

    return Source(
        f"Statuspage.{slug}",
        Get(f"https://{host}/api/v2/status.json"),
        parse,
        licence=Licence("unclear", f"{slug} status", f"https://{host}"),
        hosts=STATUS,
        fresh_s=60,
        ageless="the page is dated by its last incident, which may be weeks ago",
        keep_s=15 * MINUTE,
        timeout_s=5,
        untrusted=True,
    )


STATUSPAGES = {slug: statuspage(slug) for slug in HOSTS}
