"""Which document stands at which address. Everything is generated from the registry, when first asked for."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rest_bridge.face import Handler
from rest_bridge.serving import by_query, fresh, lazy, negotiated
from toolserver.clock import Clock
from toolserver.documents import PAYMENTS, PAYMENTS_MARKDOWN, PREMIUM_FACTS, Document, Facts, Sales, Terms, sells
from toolserver.registry import Registry
from toolserver.settings import Settings

HERE = Path(__file__).resolve().parent


def sales_of(settings: Settings) -> Sales | None:
    """How credits can be bought, as documents say it; None where none can."""
    own, x402 = settings.payments, settings.x402
    follows = settings.ledger.url is not None
    transfer = settings.ledger.public_url is not None if follows else own.enabled
    if not transfer and not x402.enabled:
        return None
    terms = Terms(
        quote_minutes=own.quote_minutes,
        grace_minutes=own.grace_minutes,
        credits_late=own.late == "credit",
        shared_wallet=own.binding == "shared_wallet",
        confirmations=own.confirmations,
        safe_from_usd=own.safe_from_usd,
        finalized_from_usd=own.finalized_from_usd,
    )
    return Sales(transfer, None if follows else terms, x402.most_usd if x402.enabled else None)


def changelog_source() -> str:
    """CHANGELOG.md: beside the package when installed, at the project's root when run from a checkout."""
    for folder in (HERE, HERE.parent):
        path = folder / "CHANGELOG.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return "# Changelog\n"


def kept_examples() -> dict[str, Any]:
    """The example answers that `toolserver docs` has written, by tool name."""
    folder = HERE.parent / "catalog" / "examples"
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def written(registry: Registry, facts: Facts) -> dict[str, Document]:
    """Every document that depends on nothing but the registry and the facts, by path."""
    from catalog import hosts, llms_txt
    from rest_bridge.documents import documents

    snippets = hosts.snippets(facts, token=sells(registry))
    own = documents(registry, facts, snippets=snippets, changes=changelog_source(), examples=kept_examples())
    return own | llms_txt.documents(registry, facts)


def pages_of(
    registry: Registry, facts: Facts, clock: Clock, ready: Callable[[], Mapping[str, bool]]
) -> dict[str, Handler]:
    """Handlers by path."""
    all_written = functools.cache(lambda: written(registry, facts))

    def tool_definitions(given: Mapping[str, str]) -> Document:
        from catalog.llm_tools import llm_tools
        from rest_bridge.discovery import as_json

        chosen = {name: given[name] for name in ("format", "tier") if name in given}
        return as_json(llm_tools(registry, facts=facts, generated_at=clock.now(), **chosen))

    def readiness() -> Document:
        from rest_bridge.discovery import as_json

        checks = ready()
        return as_json({"ready": all(checks.values()), "checks": dict(checks)})

    def document(path: str) -> Handler:
        return lazy(lambda: all_written()[path])

    def either(path: str) -> Handler:
        return negotiated(lambda: all_written()[path], lambda: all_written()[f"{path}.md"], "text/markdown")

    return {
        **{path: document(path) for path in paths(registry)},
        **{path: either(path) for path in ("/changelog", PAYMENTS) if path != PAYMENTS or sells(registry)},
        "/api/llm-tools": by_query(tool_definitions),
        "/readyz": fresh(readiness, status=lambda: 200 if all(ready().values()) else 503),
    }


def paths(registry: Registry) -> list[str]:
    """Where documents stand, without making them."""
    from toolserver.problems import PROBLEMS

    fixed = ["/", "/docs", "/problems", "/changelog.md", "/openapi.json", "/llms.txt", "/llms-full.txt", "/api/meta"]
    fixed += ["/.well-known/api-catalog", "/robots.txt", "/style.css"]
    paid = [PAYMENTS_MARKDOWN, PREMIUM_FACTS] if sells(registry) else []
    return [*fixed, *paid, *(f"/problems/{code}" for code in PROBLEMS)]
