"""Status pages with the Statuspage interface: Atlassian's own and those that imitate it (JSON, no key).

https://www.githubstatus.com/api
"""

from typing import Any, Literal, NamedTuple, cast, get_args

from tools.shared.text import clean
from tools.sources.hosts import STATUS
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

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
    "Stripe": "status.stripe.com",
    "Zoom": "status.zoom.us",
    "Datadog": "status.datadoghq.com",
}


class PageSummary(NamedTuple):
    """The page's own verdict, and its words for it."""

    indicator: Indicator
    description: str


def parse(body: Any, query: None) -> PageSummary:
    """`status` of status.json or summary.json. `page.updated_at` may be months old and says nothing."""
    indicator = body["status"]["indicator"]
    if indicator not in get_args(Indicator):
        raise SourceChanged(f"indicator is {indicator!r:.40}")
    description = body["status"].get("description")
    return PageSummary(cast("Indicator", indicator), clean(description) if isinstance(description, str) else "")


def statuspage(slug: str) -> Source[None, PageSummary]:
    """The page of one service."""
    host = HOSTS[slug]

    def request(query: None, keys: Keys) -> Get:
        return Get(f"https://{host}/api/v2/status.json")

    return Source(
        f"Statuspage.{slug}",
        request,
        parse,
        licence=Licence("unclear", f"{slug} status page", f"https://{host}"),
        hosts=STATUS,
        fresh_s=60,
        keep_s=900,
        timeout_s=5,
        untrusted=True,
    )


STATUSPAGES = {slug: statuspage(slug) for slug in HOSTS}
