"""Read status pages with the Statuspage interface: Atlassian's own and those that imitate it (JSON, no key).

https://www.githubstatus.com/api
"""

from typing import Any, Literal, NamedTuple, cast, get_args

from tools.parsing.fields import clean
from tools.sources.hosts import MINUTE, STATUS
from toolserver import Get, Licence, Source, SourceChanged, read_rows

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
BY_COMPONENT = frozenset({"OpenAI"})  # pages whose verdict is about other parts than the API


class Component(NamedTuple):
    """A part of a service, and the page's word for its state, such as `degraded_performance`."""

    name: str
    state: str


class PageSummary(NamedTuple):
    """The page's own verdict, its description, and the parts of the service where the page lists them."""

    indicator: Indicator
    description: str
    components: tuple[Component, ...] = ()


def parse(body: Any, query: None) -> PageSummary:
    """Return `status` of status.json. `page.updated_at` may be months old and is ignored."""
    indicator = body["status"]["indicator"]
    if indicator not in get_args(Indicator):
        raise SourceChanged(f"indicator is {indicator!r:.40}")
    description = body["status"].get("description")
    return PageSummary(cast("Indicator", indicator), clean(description) if isinstance(description, str) else "")


def parse_summary(body: Any, query: None) -> PageSummary:
    """Return `status` and `components` of summary.json; a summary without components has the page's verdict alone."""
    return parse(body, query)._replace(components=read_rows(body.get("components") or (), _component))


def _component(row: dict[str, Any]) -> Component:
    return Component(clean(row["name"], 80), clean(row["status"], 40).lower())


def statuspage(slug: str) -> Source[None, PageSummary]:
    """Return the source of a service's page: its verdict, or the whole summary where its parts matter."""
    host, has_parts = HOSTS[slug], slug in BY_COMPONENT

    return Source(
        f"Statuspage.{slug}",
        Get(f"https://{host}/api/v2/{'summary' if has_parts else 'status'}.json"),
        parse_summary if has_parts else parse,
        licence=Licence("unclear", f"{slug} status", f"https://{host}"),
        hosts=STATUS,
        fresh_s=60,
        ageless="the page is dated by its last incident, which may be weeks ago",
        keep_s=15 * MINUTE,
        timeout_s=5,
        untrusted=True,
    )


STATUSPAGES = {slug: statuspage(slug) for slug in HOSTS}
