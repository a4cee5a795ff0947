"""The generated files of a checkout: the README's tool table, pages of tools, sources and errors, and examples."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from catalog import tool_pages
from toolserver.documents import duration, price
from toolserver.examples import example_answers
from toolserver.problems import PROBLEMS
from toolserver.registry import Operation, Registry
from toolserver.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
_TABLE = re.compile(r"(<!-- tools: [^>]*-->\n).*?(<!-- /tools -->)", re.DOTALL)


def tool_table(registry: Registry) -> str:
    """The tools as a Markdown table, in registry order."""
    rows = [
        f"| [`{o.name}`](docs/tools/{o.name}.md) | `{o.method} {o.path}` | {price(o)} | {_cached(o)} | {o.title} |"
        for o in registry
    ]
    return "\n".join(["| tool | REST | price | cache | what |", "|---|---|---|---|---|", *rows, ""])


def _cached(operation: Operation) -> str:
    return duration(operation.longest_ttl) if operation.longest_ttl else "none"


def generated(registry: Registry, examples: Mapping[str, Any], root: Path = ROOT) -> dict[Path, str]:
    """Every generated file, by path below the root, with what should be in it."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    table = tool_table(registry)
    pages = {Path(f"docs/tools/{o.name}.md"): tool_pages.tool_page(o, examples.get(o.name)) for o in registry}
    shown = {
        Path(f"catalog/examples/{name}.json"): json.dumps(example, indent=1, ensure_ascii=False) + "\n"
        for name, example in examples.items()
    }
    return {
        Path("README.md"): _TABLE.sub(lambda found: found[1] + table + found[2], readme),
        Path("docs/sources.md"): tool_pages.sources_page(registry),
        Path("docs/errors.md"): tool_pages.errors_page(PROBLEMS),
        **pages,
        **shown,
    }


def write_documents(settings: Settings, *, check: bool = False, root: Path = ROOT) -> list[Path]:
    """Bring generated files up to date; returns those that were (or, with `check`, are) out of date."""
    registry = Registry.load(*settings.tools)
    wanted = generated(registry, anyio.run(example_answers, registry, settings), root)
    changed = [path for path, text in wanted.items() if _read(root / path) != text]
    known = {path for folder in ("docs/tools", "catalog/examples") for path in (root / folder).glob("*.*")}
    gone = [path.relative_to(root) for path in known if path.relative_to(root) not in wanted]
    if not check:
        for path in changed:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(wanted[path], encoding="utf-8")
        for path in gone:
            (root / path).unlink()
    return sorted([*changed, *gone])


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
