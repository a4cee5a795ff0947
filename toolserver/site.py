"""Which document stands at which address. Everything is generated from the registry, when first asked for."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rest_bridge.face import Handler
from rest_bridge.serving import by_query, fresh, lazy, negotiated
from toolserver.clock import Clock
from toolserver.documents import Document, Facts
from toolserver.registry import Registry

HERE = Path(__file__).resolve().parent


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
    from toolserver.documents import sells

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

    return {
        **{path: document(path) for path in paths(registry)},
        "/changelog": negotiated(
            lambda: all_written()["/changelog"], lambda: all_written()["/changelog.md"], "text/markdown"
        ),
        "/api/llm-tools": by_query(tool_definitions),
        "/readyz": fresh(readiness, status=lambda: 200 if all(ready().values()) else 503),
    }


def paths(registry: Registry) -> list[str]:
    """Where documents stand, without making them."""
    from toolserver.documents import PAYMENTS, sells
    from toolserver.problems import PROBLEMS

    fixed = ["/", "/docs", "/problems", "/changelog.md", "/openapi.json", "/llms.txt", "/llms-full.txt", "/api/meta"]
    fixed += ["/.well-known/api-catalog", "/robots.txt", "/style.css", *([PAYMENTS] if sells(registry) else [])]
    return [*fixed, *(f"/problems/{code}" for code in PROBLEMS)]
