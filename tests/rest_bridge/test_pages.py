"""The pages: well-formed, safe, linked, complete; and the documents for programs beside them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from catalog import llms_txt
from catalog.hosts import snippets
from rest_bridge.discovery import api_catalog, meta, robots
from rest_bridge.documents import documents
from rest_bridge.pages import html, markdown
from rest_bridge.pages.html import Html, tag
from tests.catalog.tiny import FACTS, FREE, PLACE, TINY
from tests.requirements import proves
from tests.rest_bridge.markup import Page
from toolserver import errors
from toolserver.documents import Limits, duration, pages
from toolserver.problems import PROBLEMS, body
from toolserver.registry import Registry

PROJECT = Registry.load("tools")
CHANGES = """\
# Changelog

## [Unreleased]

### Added

- `sights`: <new>
  and high
- **more** at [the page](https://more.example/)
"""
BY_OTHERS = {"/api/llm-tools", "/api/mcp", "/readyz"}  # answered by the application itself

registries = pytest.mark.parametrize("registry", [TINY, FREE, PROJECT], ids=["tiny", "free", "project"])


def made(registry, facts=FACTS):
    return documents(registry, facts, snippets=snippets(facts), changes=CHANGES)


def html_pages(registry, facts=FACTS):
    found = made(registry, facts)
    return {path: Page(d.body) for path, d in found.items() if d.content_type.startswith("text/html")}


@registries
def test_every_page_is_well_formed_with_one_heading_and_unique_ids(registry):
    for path, page in html_pages(registry).items():
        assert page.faults == [], path
        assert page.names.count("h1") == 1, path
        assert page.names.count("main") == 1, path
        assert len(page.ids) == len(set(page.ids)), path


@registries
def test_no_page_carries_script_or_anything_from_elsewhere(registry):
    for path, page in html_pages(registry).items():
        assert not {"script", "iframe", "img", "style"} & set(page.names), path
        assert "/style.css" in page.links


@registries
def test_every_link_of_a_page_leads_to_something_that_is_there(registry):
    found = html_pages(registry)
    there = {*made(registry), *llms_txt.documents(registry, FACTS), *BY_OTHERS, *(o.path for o in registry)}
    for path, page in found.items():
        for link in page.links:
            target = urlsplit(link)
            if target.scheme in ("cursor", "vscode") or target.netloc not in ("", "data.example"):
                continue
            assert (target.path or path) in there, (path, link)
            if target.fragment:
                assert target.fragment in found[target.path or path].ids, (path, link)


def test_links_keep_the_path_that_the_public_address_has():
    facts = replace(FACTS, base_url="https://data.example/live")
    for page in html_pages(TINY, facts).values():
        own = [urlsplit(link) for link in page.links if urlsplit(link).netloc in ("", "data.example")]
        assert all(not link.path or link.path.startswith("/live/") for link in own if link.scheme in ("", "https"))


def test_third_party_words_never_become_markup():
    text = made(TINY)["/docs"].body.decode()
    assert "Sample &amp; Sons &lt;office&gt;" in text
    assert "Highest &lt;first&gt;" in text
    assert "<office>" not in text
    assert PLACE.licence.terms_url in text


@registries
def test_the_home_page_lists_every_tool_and_how_to_connect(registry):
    page = html_pages(registry)["/"]
    for operation in registry:
        assert operation.name in page.text
        assert operation.description in page.text
    for host in ("Claude Desktop", "Claude Code", "Cursor", "VS Code", "Gemini CLI"):
        assert host in page.text
    assert "https://data.example/api/mcp" in page.text


def test_the_home_page_offers_a_call_to_copy_only_if_one_works_as_it_stands():
    assert "curl https://data.example/api/digest" in html_pages(TINY)["/"].text
    assert "curl" not in html_pages(Registry([TINY["premium_deep"]]))["/"].text


@registries
def test_the_reference_has_an_anchor_and_the_fields_of_every_tool(registry):
    page = html_pages(registry)["/docs"]
    for operation in registry:
        assert operation.name in page.ids
        assert all(source.name in page.text for source in operation.sources)
    assert "licence" in page.ids


def test_the_reference_shows_arguments_with_kinds_defaults_and_meaning():
    text = html_pages(TINY)["/docs"].text
    for words in (
        "number, from -90 to 90",
        "one of tower, bridge",
        "required",
        "data.best.height_m",
        "stale answer is not charged",
    ):
        assert words in text


def test_payments_are_a_page_only_where_something_is_sold():
    assert "/docs/payments" in made(TINY)
    assert "0.04" in html_pages(TINY)["/docs/payments"].text
    assert "/docs/payments" not in made(FREE)
    assert not any(
        "credits" in page.text for path, page in html_pages(FREE).items() if not path.startswith("/problems/")
    )


def test_a_simulated_world_is_called_one_on_every_page():
    for page in html_pages(TINY, replace(FACTS, simulated=True)).values():
        assert "simulated world" in page.text
    assert not any("simulated world" in page.text for page in html_pages(TINY).values())


@proves("errors.type")
def test_every_problem_has_a_page_that_its_type_leads_to():
    found = html_pages(TINY)
    for code, problem in PROBLEMS.items():
        page = found[f"/problems/{code}"]
        assert problem.title in page.text
        assert code in page.text
        told = body(code, "why", facts=FACTS, request_id="r1")
        assert urlsplit(told.get("type", f"/problems/{code}")).path == f"/problems/{code}"


@proves("payment-error.body", "errors.problem")
def test_a_payment_failure_has_the_body_of_the_specification_and_the_others_that_of_rfc_9457():
    paid = body("missing_token", "why", facts=FACTS, request_id="r1")
    assert paid == {
        "error": "missing_token",
        "signup": "https://data.example/docs/payments",
        "pricing": {"1 USD": "50 credits"},
        "detail": "why",
        "request_id": "r1",
    }
    assert body("rate_limited", "why", facts=FACTS, request_id="r1", retry_after_seconds=30) == {
        "type": "https://data.example/problems/rate_limited",
        "title": "Rate limit exceeded",
        "status": 429,
        "error": "rate_limited",
        "detail": "why",
        "request_id": "r1",
        "retry_after_seconds": 30,
    }


def rejections(kind=errors.CallRejected):
    for sub in kind.__subclasses__():
        yield sub
        yield from rejections(sub)


@proves("errors.codes")
def test_every_rejection_of_the_code_is_in_the_table_with_its_status_and_title():
    for kind in rejections():
        if kind is not errors.PaymentRequired and kind.__module__.split(".")[0] in ("toolserver", "rest_bridge"):
            problem = PROBLEMS[kind.code]
            assert (problem.status, problem.title) == (kind.status, kind.title), kind


@proves("errors.codes")
def test_the_table_holds_every_code_of_the_contract():
    assert set(PROBLEMS) == set(
        "invalid_arguments invalid_json unsupported_media_type payload_too_large not_found method_not_allowed"
        " rate_limited missing_token invalid_token expired insufficient_credits billing_unavailable"
        " payment_required payment_pending"
        " no_matching_transfer below_minimum already_credited payer_proof_required idempotency_conflict"
        " upstream_unavailable chain_unavailable settlement_pending internal_error".split()
    )


@proves("version.changelog")
def test_the_changelog_is_a_page_and_stays_markdown_for_who_wants_that():
    found = made(TINY)
    page = found["/changelog"].body.decode()
    assert "<h2>[Unreleased]</h2>" in page
    assert "<li><code>sights</code>: &lt;new&gt; and high</li>" in page
    assert '<strong>more</strong> at <a href="https://more.example/">the page</a>' in page
    assert found["/changelog.md"].body.decode() == CHANGES
    assert found["/changelog.md"].content_type.startswith("text/markdown")


def test_the_project_s_own_changelog_reads_well_as_a_page():
    source = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    page = Page(markdown.html(source).encode())
    assert page.faults == []
    assert page.names.count("h1") == 1
    assert "**" not in page.text
    assert "](" not in page.text


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "//elsewhere.example"])
def test_a_link_that_is_not_plain_http_stays_text(address):
    assert markdown.inline(f"[x]({address})") == f"[x]({address})"


def test_values_are_escaped_and_markup_is_not_escaped_twice():
    assert tag("p", "<b>", tag("i", "&"), title='"') == '<p title="&quot;">&lt;b&gt;<i>&amp;</i></p>'
    assert isinstance(html.prose("use `a<b`"), Html)
    assert html.prose("use `a<b`") == "use <code>a&lt;b</code>"
    assert tag("details", open=False, hidden=True, data_label="x") == '<details hidden data-label="x"></details>'


@pytest.mark.parametrize(
    ("seconds", "words"), [(30, "30 s"), (90, "90 s"), (60, "1 min"), (3600, "1 h"), (86400, "1 d")]
)
def test_durations_use_the_largest_unit_that_fits(seconds, words):
    assert duration(seconds) == words


@proves("discovery.meta")
def test_meta_tells_versions_freshness_sources_in_order_and_limits():
    facts = replace(FACTS, limits=Limits(free_per_day=7, free_spacing_s=3))
    found = meta(TINY, facts)
    assert (found["service"], found["api_version"]) == ("toolserver", "1.15.0")
    by_tool = {row["tool"]: row for row in found["freshness"]}
    assert by_tool["premium_deep"]["stale_after_s"] == 600
    assert by_tool["sights"] == {
        "tool": "sights",
        "endpoint": "/api/sights",
        "tier": "free",
        "cache_ttl_s": 90,
        "stale_after_s": 90,
        "sources": ["Sample.place"],
    }
    assert found["sources"][0]["licence"] == {
        "class": "attribution",
        "attribution": "Sample & Sons <office>",
        "terms_url": "https://upstream.example/terms",
    }
    assert found["limits"]["free"] == {"calls_per_day": 7, "seconds_between_calls_per_endpoint": 3}
    assert found["ledger"] == {"mode": "embedded"}
    assert meta(FREE, facts)["ledger"] is None


def test_meta_lists_each_public_source_name_once():
    names = [source["name"] for source in meta(PROJECT, FACTS)["sources"]]
    assert names == sorted(set(names))


@registries
def test_discovery_leads_to_what_is_there(registry):
    there = {*made(registry), *llms_txt.documents(registry, FACTS), *BY_OTHERS}
    assert {urlsplit(url).path for url in meta(registry, FACTS)["discovery"].values()} <= there
    listed = json.dumps(api_catalog(registry, FACTS))
    assert {urlsplit(url).path for url in re.findall(r"https://data\.example[^\"]*", listed)} <= there
    assert {page.path for page in pages(registry)} <= there


@proves("discovery.catalog")
def test_the_api_catalogue_is_a_link_set():
    document = made(TINY)["/.well-known/api-catalog"]
    assert document.content_type.startswith("application/linkset+json")
    catalogue, api = json.loads(document.body)["linkset"]
    assert {"href": "https://data.example/api/mcp"} in catalogue["item"]
    assert api["service-desc"][0]["href"] == "https://data.example/openapi.json"
    assert {"anchor", "service-doc", "service-desc", "service-meta", "describedby", "status"} == api.keys()


@proves("discovery.robots")
def test_crawlers_are_asked_to_leave_the_api_alone():
    assert "Disallow: /api/\n" in robots(FACTS)


@registries
def test_nothing_of_this_machine_is_told_and_documents_are_the_same_each_time(registry):
    once, again = made(registry), made(registry)
    assert once == again
    for document in once.values():
        assert str(Path(__file__).resolve().parents[2]).encode() not in document.body
        assert str(Path.home()).encode() + b"/" not in document.body
