"""Discovery: service facts, the API catalogue, robots.txt."""

import json
import re
from dataclasses import replace
from urllib.parse import urlsplit

from catalog import llms_txt
from rest_bridge.discovery import api_catalog, as_json, documents, meta, premium, robots, site_map
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.rest_bridge.made import BY_OTHERS, PROJECT, made, registries
from toolserver.registry.site_facts import Document, LimitFacts
from toolserver.registry.site_pages import pages


@proves("discovery.meta")
def test_meta_tells_versions_freshness_sources_in_order_and_limits():
    facts = replace(FACTS, limits=LimitFacts(free_per_day=7, free_spacing_s=3))
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
    assert catalogue == {
        "anchor": "https://data.example/.well-known/api-catalog",
        "item": [{"href": "https://data.example/"}, {"href": "https://data.example/api/mcp"}],
    }
    assert api["service-desc"][0]["href"] == "https://data.example/openapi.json"
    assert {"anchor", "service-doc", "service-desc", "service-meta", "describedby", "status"} == api.keys()


@proves("discovery.robots")
def test_crawlers_are_asked_to_leave_the_api_alone():
    assert "Disallow: /api/\n" in robots(FACTS)


def test_meta_tells_where_receipts_are_checked_only_where_they_are_given():
    found = meta(TINY, FACTS)
    assert found["receipts"] == {
        "format": "JWS (EdDSA, Ed25519)",
        "key_set": "https://data.example/.well-known/service-receipt-keys.json",
        "key": "https://data.example/.well-known/service-receipt-key.json",
        "verify": "https://data.example/api/receipt/verify",
        "log": "https://data.example/api/payment/no-charge-log/checkpoint",
    }
    assert found["licence"].keys() == {"free", "premium"}
    assert (meta(FREE, FACTS)["receipts"], meta(FREE, FACTS)["licence"].keys()) == (None, {"free"})


def test_meta_tells_every_limit_where_something_is_sold_and_the_free_ones_elsewhere():
    facts = replace(FACTS, limits=LimitFacts(7, 3, 11, 13))
    free = {"calls_per_day": 7, "seconds_between_calls_per_endpoint": 3}
    assert meta(TINY, facts)["limits"] == {
        "free": free,
        "payment": {"calls_per_minute": 11},
        "premium": {"calls_per_minute_and_token": 13},
    }
    assert meta(FREE, facts)["limits"] == {"free": free}


def test_freshness_is_told_of_every_tool_whose_answer_stays_for_a_while_and_each_source_once():
    rows = meta(TINY, FACTS)["freshness"]
    assert [(row["tool"], row["stale_after_s"]) for row in rows] == [
        *(("sights", 90), ("digest", 60), ("premium_deep", 600))
    ]
    for row in meta(PROJECT, FACTS)["freshness"]:
        assert len(row["sources"]) == len(set(row["sources"])), row["tool"]


def test_premium_facts_are_price_arguments_and_freshness_of_what_is_sold_and_of_nothing_else():
    found = premium(TINY, FACTS)
    assert (found["count"], found["pricing"]) == (1, {"1 USD": "50 credits"})
    assert found["payments"] == "https://data.example/docs/payments"
    assert found["endpoints"] == [
        {
            "tool": "premium_deep",
            "title": "Deep look",
            "path": "/api/pro/deep",
            "url": "https://data.example/api/pro/deep",
            "method": "GET",
            "credits": 2,
            "params": [{"name": "history", "required": False, "schema": {"type": "string", "enum": ["30d"]}}],
            "free_sibling": None,
            "cache_ttl_s": 300,
            "sla_s": 600,
            "docs": "https://data.example/t/premium_deep",
        }
    ]


def test_a_premium_tool_names_the_free_one_that_is_nearest():
    by_tool = {row["tool"]: row for row in premium(PROJECT, FACTS)["endpoints"]}
    assert by_tool["premium_briefing"]["free_sibling"] == {"tool": "briefing", "path": "/api/briefing"}
    required = {row["tool"]: [each["name"] for each in row["params"] if each["required"]] for row in by_tool.values()}
    assert required == {tool: PROJECT[tool].input_schema.get("required", []) for tool in by_tool}


def test_premium_facts_are_a_document_only_where_something_is_sold():
    always = {"/api/meta", "/api/sources", "/.well-known/api-catalog", "/robots.txt"}
    assert documents(TINY, FACTS).keys() == always | {"/api/meta/pro"}
    assert documents(FREE, FACTS).keys() == always
    assert json.loads(documents(TINY, FACTS)["/api/meta/pro"].body) == premium(TINY, FACTS)


def test_json_is_written_without_spaces_and_in_its_own_letters():
    assert as_json({"a": [1, "é…"]}) == Document('{"a":[1,"é…"]}'.encode(), "application/json")
    assert as_json({}, "x/y").content_type == "x/y"


def test_the_site_map_lists_public_addresses_as_xml():
    body = site_map(["/", "/a&b"], FACTS)
    assert body.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/')
    assert re.findall("<loc>(.*?)</loc>", body) == ["https://data.example/", "https://data.example/a&amp;b"]


def test_the_rules_for_crawlers_keep_the_path_of_the_public_address():
    assert robots(replace(FACTS, base_url="https://data.example/live")) == (
        "User-agent: *\nAllow: /\nDisallow: /live/api/\nSitemap: https://data.example/live/sitemap.xml\n"
    )
