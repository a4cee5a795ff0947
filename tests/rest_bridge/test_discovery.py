"""Discovery: service facts, the API catalogue, robots.txt."""

import json
import re
from dataclasses import replace
from urllib.parse import urlsplit

from catalog import llms_txt
from rest_bridge.discovery import api_catalog, meta, robots
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.rest_bridge.made import BY_OTHERS, PROJECT, made, registries
from toolserver.registry.site_facts import LimitFacts
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
    assert {"href": "https://data.example/api/mcp"} in catalogue["item"]
    assert api["service-desc"][0]["href"] == "https://data.example/openapi.json"
    assert {"anchor", "service-doc", "service-desc", "service-meta", "describedby", "status"} == api.keys()


@proves("discovery.robots")
def test_crawlers_are_asked_to_leave_the_api_alone():
    assert "Disallow: /api/\n" in robots(FACTS)
