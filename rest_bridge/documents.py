"""Writes every document of the HTTP face that depends only on the registry and the facts."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rest_bridge import discovery
from rest_bridge.openapi.document import NO_EXAMPLES, openapi
from rest_bridge.pages.account import account_page
from rest_bridge.pages.buy import buy_page
from rest_bridge.pages.changelog import changelog, changelog_markdown, code_history
from rest_bridge.pages.design import design_page
from rest_bridge.pages.guides import Guides
from rest_bridge.pages.home import home
from rest_bridge.pages.payments import NO_TABLE, payments, payments_markdown
from rest_bridge.pages.problems import problem_page, problems_page
from rest_bridge.pages.receipts import receipts_page
from rest_bridge.pages.reference import reference
from rest_bridge.pages.tool import tool_page
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.licence_table import LicenceTable
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import (
    ACCOUNT,
    BUY,
    CODE_HISTORY,
    DESIGN,
    FRONT,
    JSON,
    PAYMENTS,
    PAYMENTS_MARKDOWN,
    RECEIPTS,
    SAMPLES,
    Document,
    LazyDocuments,
    SiteFacts,
    Snippet,
    WriteDocument,
    sells,
    tool_path,
)
from toolserver.registry.site_pages import pages

API_CHANGES = "api-changes"  # the document of what changed for users


def documents(
    registry: Registry,
    facts: SiteFacts,
    *,
    snippets: Sequence[Snippet] = (),
    changes: str = "",
    examples: Mapping[str, Any] = NO_EXAMPLES,
    samples: Mapping[str, bytes] = NO_EXAMPLES,
    licences: LicenceTable = NO_TABLE,
    guides: Mapping[str, str] = NO_EXAMPLES,
) -> LazyDocuments:
    """Return documents by path. A path that ends in `.md` has the same page as Markdown.

    `changes` is CHANGELOG.md, `guides` the documents of docs/ by name. `examples` are answers
    with shortened lists, `samples` whole ones of premium tools, as JSON.
    """
    rendered_guides = Guides(guides, registry, facts)
    history = guides.get(API_CHANGES, changes)
    paid: dict[str, WriteDocument] = {}
    if sells(registry):
        paid = {
            PAYMENTS: partial(payments, registry, facts, licences),
            BUY: partial(buy_page, registry, facts),
            ACCOUNT: partial(account_page, registry, facts, guide="webhooks" in guides),
            RECEIPTS: partial(receipts_page, registry, facts, guide="receipts" in guides),
        }
    html: dict[str, WriteDocument] = {
        "/": partial(home, registry, facts, snippets, examples),
        "/docs": partial(reference, registry, facts, rendered_guides.groups),
        **{tool_path(o): partial(tool_page, registry, facts, o, examples.get(o.name), samples) for o in registry},
        **paid,
        "/problems": partial(problems_page, registry, facts),
        **{
            f"/problems/{problem.code}": partial(problem_page, registry, facts, problem)
            for problem in PROBLEMS.values()
        },
        "/changelog": partial(changelog, registry, facts, history, guides.keys()),
        DESIGN: partial(design_page, registry, facts),
        CODE_HISTORY: partial(code_history, registry, facts, changes),
    }
    changing = [page.path for page in pages(registry) if page.media_type == "text/html" and not page.fixed]
    listed = [*html, *rendered_guides.paths, *(path for path in changing if path != FRONT)]
    other: dict[str, WriteDocument] = {
        **{f"{SAMPLES}/{o.name}.json": partial(Document, samples[o.name], JSON) for o in registry if o.name in samples},
        "/changelog.md": partial(changelog_markdown, history),
        "/openapi.json": lambda: discovery.as_json(openapi(registry, facts, examples)),
        "/sitemap.xml": lambda: Document(discovery.site_map(listed, facts).encode(), "application/xml"),
    }
    if sells(registry):
        other[PAYMENTS_MARKDOWN] = partial(payments_markdown, registry, facts, licences)
    written = LazyDocuments(html | other) | discovery.documents(registry, facts)
    return written | rendered_guides.documents() if guides else written
