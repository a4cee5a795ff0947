"""Lists the pages, which decides where each page is served, described, listed and linked."""

from dataclasses import dataclass

from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import (
    ACCOUNT,
    AI_CATALOG,
    API_CATALOG,
    BUY,
    CODE_HISTORY,
    DESIGN,
    FRONT,
    JSON,
    LEDGER_HEALTH,
    LIVE,
    LIVEZ,
    NO_CHARGE,
    PAYMENTS,
    PAYMENTS_MARKDOWN,
    PREMIUM_FACTS,
    READYZ,
    RECEIPTS,
    SERVER_CARD,
    SOURCES,
    SOURCES_PAGE,
    STATUS,
    STATUS_FEED,
    STATUS_JSON,
    sells,
)


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page of the HTTP face. This list decides where the page is served, described and listed.

    `relation` is how the API catalogue (RFC 9727) refers to it.
    """

    path: str
    title: str
    summary: str
    media_type: str
    relation: str | None = None
    fixed: bool = True
    """True if the page depends only on the registry and the facts, so that it is written once."""
    paid: bool = False
    """True if the page exists only on a service that sells."""
    markdown: bool = False
    """True if the page is also served as Markdown, at its path with `.md` at the end."""
    described: bool = True
    """True if the OpenAPI document describes the page. Pages for people and crawlers are not described."""
    listed: bool = True
    """True if llms.txt links to the page."""
    label: str = ""
    """The page's name in the navigation; empty if the navigation does not link to it."""
    aside: bool = False
    """True if the page is in the navigation at the bottom of pages instead of the one at the top."""

    @property
    def markdown_path(self) -> str:
        """The path of its Markdown form."""
        return f"{self.path}.md"


PAGES = (
    SitePage(
        "/",
        "Home",
        "What the service is, how to connect, all tools at a glance",
        "text/html",
        described=False,
        listed=False,
    ),
    SitePage(
        "/docs",
        "Tool reference",
        "Arguments, answers and sources of every tool",
        "text/html",
        "service-doc",
        described=False,
        label="Docs",
    ),
    SitePage(
        PAYMENTS,
        "Credits and payments",
        f"Prices, how to buy credits, when a call is free; as Markdown at `{PAYMENTS_MARKDOWN}`",
        "text/html",
        paid=True,
        markdown=True,
        described=False,
        label="Payments",
    ),
    SitePage(
        BUY,
        "Buy credits",
        "Buy credits for the paid tools with USDC on Base, from any wallet",
        "text/html",
        paid=True,
        described=False,
        label="Buy",
    ),
    SitePage(
        ACCOUNT,
        "Your account",
        "Balance, statement, allowances and webhooks of a token, which is kept only in the page",
        "text/html",
        paid=True,
        described=False,
        label="Account",
    ),
    SitePage(
        RECEIPTS,
        "Verify a receipt",
        "Checks the signed receipt of a paid call in the browser, without sending it",
        "text/html",
        paid=True,
        described=False,
        label="Receipts",
    ),
    SitePage(
        NO_CHARGE,
        "Calls that were not charged",
        "Paid calls that cost nothing, by day, with the signed state of the public log",
        "text/html",
        fixed=False,
        paid=True,
        described=False,
        label="Not charged",
        aside=True,
    ),
    SitePage(
        "/openapi.json",
        "OpenAPI 3.1",
        "The whole REST interface, machine-readable",
        JSON,
        "service-desc",
        label="OpenAPI",
        aside=True,
    ),
    SitePage(
        "/llms.txt",
        "llms.txt",
        "A short guide for language models",
        "text/plain",
        "describedby",
        listed=False,
        label="llms.txt",
        aside=True,
    ),
    SitePage(
        "/llms-full.txt", "llms-full.txt", "The long guide: every tool with its fields", "text/plain", "describedby"
    ),
    SitePage(
        "/api/llm-tools",
        "Tool definitions",
        "Function-calling definitions in six layouts, with the route of each tool",
        JSON,
        "service-desc",
        fixed=False,
    ),
    SitePage(
        "/api/mcp", "MCP endpoint", "Model Context Protocol over HTTP (POST, JSON-RPC 2.0)", JSON, "item", fixed=False
    ),
    SitePage(
        "/api/meta",
        "Service facts",
        "Versions, freshness, sources, licences, limits",
        JSON,
        "service-meta",
        label="Service facts",
        aside=True,
    ),
    SitePage(
        SOURCES,
        "Sources",
        "Every source with its licence, terms and attribution; `_meta.sources_digest` of answers is its digest",
        JSON,
    ),
    SitePage(
        LIVE,
        "Live values",
        "The newest kept value of each free tool that shows one, with its time and past day",
        JSON,
        fixed=False,
    ),
    SitePage(
        FRONT,
        "Front",
        "The part of the home page that changes, as HTML",
        "text/html",
        fixed=False,
        described=False,
        listed=False,
    ),
    SitePage(
        PREMIUM_FACTS,
        "Premium facts",
        "Price, arguments, freshness and nearest free tool of every premium tool",
        JSON,
        paid=True,
    ),
    SitePage(
        "/problems",
        "Error codes",
        "Every error code, what it means and what to do about it",
        "text/html",
        described=False,
        label="Error codes",
        aside=True,
    ),
    SitePage(
        "/changelog",
        "Changelog",
        "What changed for users; deprecations are announced here 90 days ahead",
        "text/html",
        markdown=True,
        label="Changelog",
    ),
    SitePage(
        CODE_HISTORY,
        "History of the code",
        "Everything that changed, also for those who run the service or build on its code",
        "text/html",
        described=False,
        listed=False,
    ),
    SitePage(
        STATUS,
        "Status",
        "The service, its ledger and chain, and the past 24 hours of each source",
        "text/html",
        fixed=False,
        described=False,
        label="Status",
    ),
    SitePage(
        STATUS_JSON,
        "Status as JSON",
        "The content of `/status`: state, circuit, error rates and past 24 hours of every source, and what changed",
        JSON,
        "status",
        fixed=False,
    ),
    SitePage(
        STATUS_FEED,
        "Changes of sources",
        "An Atom feed of the times when a source went down or came back",
        "application/atom+xml",
        fixed=False,
    ),
    SitePage(
        SOURCES_PAGE,
        "Sources of the data",
        "Every source with its licence and terms, the tools that use it, and its past 24 hours",
        "text/html",
        fixed=False,
        described=False,
        label="Sources",
        aside=True,
    ),
    SitePage(
        DESIGN,
        "Design",
        "The mark, and the colours, sizes and distances of every page",
        "text/html",
        described=False,
        listed=False,
        label="Design",
        aside=True,
    ),
    SitePage(READYZ, "Readiness", "Whether this instance takes calls", JSON, "status", fixed=False),
    SitePage(LEDGER_HEALTH, "Ledger", "Whether this instance answers paid calls", JSON, fixed=False, listed=False),
    SitePage(LIVEZ, "Liveness", "Whether this process runs", JSON, fixed=False, listed=False),
    SitePage(
        SERVER_CARD,
        "Server card",
        "What an MCP client needs to connect",
        "application/mcp-server-card+json",
        listed=False,
    ),
    SitePage(
        AI_CATALOG,
        "AI catalogue",
        "The MCP server of this host, for clients that look for one",
        "application/ai-catalog+json",
        listed=False,
    ),
    SitePage(API_CATALOG, "API catalogue", "Where everything is (RFC 9727)", "application/linkset+json"),
    SitePage("/robots.txt", "robots.txt", "What crawlers should skip", "text/plain", described=False, listed=False),
    SitePage("/sitemap.xml", "Site map", "Every page, for crawlers", "application/xml", described=False, listed=False),
)


def pages(registry: Registry) -> list[SitePage]:
    """Return the pages of a service. Pages about payment are included only if something is sold."""
    return [page for page in PAGES if not page.paid or sells(registry)]
