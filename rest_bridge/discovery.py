"""Writes /api/meta, /api/meta/pro, /api/sources, the API catalogue and robots.txt, which describe the service."""

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from toolserver import API_VERSION, __version__
from toolserver.money.purchases.credit_price import PRICING
from toolserver.registry.registry import FREE_SIBLING, Operation, Registry, Tier
from toolserver.registry.site_facts import (
    API_CATALOG,
    FREE_LICENCE,
    JSON,
    LINKSET,
    PAYMENTS,
    PREMIUM_FACTS,
    PREMIUM_LICENCE,
    RECEIPT_KEY,
    RECEIPT_KEYS,
    SERVICE,
    SOURCES,
    TEXT,
    Document,
    LazyDocuments,
    SiteFacts,
    WriteDocument,
    sells,
    tool_path,
)
from toolserver.registry.site_pages import pages
from toolserver.registry.source_list import list_sources, write_source_list


def meta(registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    """Describe the service in one JSON object, which changes only with a release or a setting."""
    return {
        "source": facts.source,
        "service": SERVICE,
        "version": __version__,
        "api_version": API_VERSION,
        "simulated": facts.simulated,
        "contact": facts.contact,
        "freshness": [_freshness(operation) for operation in registry if operation.longest_ttl],
        "sources": list_sources(registry, facts.rights),
        "licence": {"free": FREE_LICENCE, **({"premium": PREMIUM_LICENCE} if sells(registry) else {})},
        "limits": _limits(registry, facts),
        "ledger": {"mode": facts.ledger} if sells(registry) else None,
        "receipts": _receipts(facts) if sells(registry) else None,
        "discovery": {page.path: facts.url(page.path) for page in pages(registry)},
        "api_catalog": facts.url(API_CATALOG),
    }


def _receipts(facts: SiteFacts) -> dict[str, str]:
    """Return the addresses of the signing keys, of the verification of receipts and of the log of uncharged calls."""
    return {
        "format": "JWS (EdDSA, Ed25519)",
        "key_set": facts.url(RECEIPT_KEYS),
        "key": facts.url(RECEIPT_KEY),
        "verify": facts.url("/api/receipt/verify"),
        "log": facts.url("/api/payment/no-charge-log/checkpoint"),
    }


def premium(registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    """Describe what is sold: each premium endpoint with its price, arguments, freshness and nearest free endpoint."""
    sold = [operation for operation in registry.listed if operation.tier is Tier.PREMIUM]
    return {
        "source": facts.source,
        "service": SERVICE,
        "api_version": API_VERSION,
        "count": len(sold),
        "pricing": PRICING,
        "payments": facts.url(PAYMENTS),
        "licence": PREMIUM_LICENCE,
        "endpoints": [_sold(operation, registry, facts) for operation in sold],
    }


def _sold(operation: Operation, registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    schema = operation.input_schema
    required = schema.get("required", [])
    free = registry.get(operation.tags.get(FREE_SIBLING, ""))
    return {
        "tool": operation.name,
        "title": operation.title,
        "path": operation.path,
        "url": facts.url(operation.path),
        "method": operation.method,
        "credits": operation.credits,
        **({"withheld": list(operation.withheld)} if operation.withheld else {}),
        "params": [
            {"name": name, "required": name in required, "schema": described}
            for name, described in schema.get("properties", {}).items()
        ],
        "free_sibling": {"tool": free.name, "path": free.path} if free else None,
        "cache_ttl_s": operation.longest_ttl,
        "sla_s": _stale_after(operation),
        "docs": facts.url(tool_path(operation)),
    }


def _stale_after(operation: Operation) -> float:
    """Return the age in seconds from which a value counts as stale; an answer with a stale value is not charged."""
    return operation.sla_s if operation.sla_s is not None else operation.longest_ttl


def _freshness(operation: Operation) -> dict[str, Any]:
    """Return how long an answer stays the same, when its data count as stale, and its sources in order of use."""
    return {
        "tool": operation.name,
        "endpoint": operation.path,
        "tier": operation.tier.value,
        "cache_ttl_s": operation.longest_ttl,
        "stale_after_s": _stale_after(operation),
        "sources": list(dict.fromkeys(source.name for source in operation.sources)),
    }


def _limits(registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    limits = facts.limits
    free = {"calls_per_day": limits.free_per_day, "seconds_between_calls_per_endpoint": limits.free_spacing_s}
    if not sells(registry):
        return {"free": free}
    payment = {"calls_per_minute": limits.payment_per_minute}
    return {"free": free, "payment": payment, "premium": {"calls_per_minute_and_token": limits.premium_per_minute}}


def api_catalog(registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    """Return the API catalogue (RFC 9727): one link set for the API, and the MCP endpoint as a separate API."""
    links: dict[str, list[dict[str, str]]] = {}
    for page in pages(registry):
        if page.relation and page.relation != "item":
            target = {"href": facts.url(page.path), "type": page.media_type, "title": page.title}
            links.setdefault(page.relation, []).append(target)
    items = [{"href": facts.url(page.path)} for page in pages(registry) if page.relation == "item"]
    catalogue = {"anchor": facts.url(API_CATALOG), "item": [{"href": facts.url("/")}, *items]}
    return {"linkset": [catalogue, {"anchor": facts.url("/"), **links}]}


def robots(facts: SiteFacts) -> str:
    """Return robots.txt: crawlers may read pages but not the API."""
    return f"User-agent: *\nAllow: /\nDisallow: {facts.href('/api/')}\nSitemap: {facts.url('/sitemap.xml')}\n"


def site_map(paths: Iterable[str], facts: SiteFacts) -> str:
    """Return the sitemap of pages, as XML."""
    places = "".join(f"<url><loc>{escape(facts.url(path))}</loc></url>\n" for path in paths)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{places}</urlset>\n"


def documents(registry: Registry, facts: SiteFacts) -> LazyDocuments:
    """Return all of them by path."""
    written: dict[str, WriteDocument] = {
        "/api/meta": lambda: as_json(meta(registry, facts)),
        SOURCES: lambda: Document(write_source_list(registry, facts.rights), JSON),
        API_CATALOG: lambda: as_json(api_catalog(registry, facts), LINKSET),
        "/robots.txt": lambda: Document(robots(facts).encode(), TEXT),
    }
    if sells(registry):
        written[PREMIUM_FACTS] = lambda: as_json(premium(registry, facts))
    return LazyDocuments(written)


def as_json(value: Mapping[str, Any], content_type: str = JSON) -> Document:
    """Return a value as a compact JSON document."""
    return Document(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), content_type)
