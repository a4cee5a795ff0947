"""Implement `toolserver docs`: generate files of a checkout, such as pages about tools, examples and clients' types."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import click

from catalog import python_types, tool_pages, typescript_types
from toolserver.cli.example_answers import compose_licence_table, example_answers
from toolserver.cli.load_settings import settings_from
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.licence_table import LicenceTable, write_markdown_table
from toolserver.registry.registry import Registry
from toolserver.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = "btc_price"  # the tool whose answer the README shows
_LICENCES = re.compile(r"(<!-- licences: [^>]*-->\n).*?(<!-- /licences -->)", re.DOTALL)
_ANSWER = re.compile(r"(<!-- answer: [^>]*-->\n).*?(<!-- /answer -->)", re.DOTALL)


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file is out of date")
def docs(check: bool) -> None:
    """Write the generated files of this checkout: docs, examples and the answer in the README."""
    changed = update_files(compose_documents(settings_from()), check=check)
    for path in changed:
        click.echo(f"{'out of date' if check else 'written'}: {path}")
    sys.exit(1 if check and changed else 0)


def readme_answer(example: Mapping[str, Any]) -> str:
    """Write an answer as the README shows it: one line per member, and only the sources from `_meta`."""
    members = ("name", "status", "fetched_at")
    sources = [{name: source[name] for name in members if name in source} for source in example["_meta"]["sources"]]
    shown = {**example, "_meta": {"sources": sources, "attribution": example["_meta"]["attribution"]}}
    lines = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in shown.items()]
    head = f"`GET /api/{example['endpoint']}` on the simulated world; `_meta` says more than is shown here:"
    return "\n".join([head, "", "```json", "{", ",\n".join(lines), "}", "```", ""])


def generate(
    registry: Registry, examples: Mapping[str, Any], licences: LicenceTable, root: Path = ROOT
) -> dict[Path, str]:
    """Return the text of every generated file, by its path below the root."""
    readme, selling = ((root / name).read_text(encoding="utf-8") for name in ("README.md", "docs/selling-credits.md"))
    table = f"\n{write_markdown_table(licences)}\n\n"
    pages = {Path(f"docs/tools/{o.name}.md"): tool_pages.tool_page(o, examples.get(o.name)) for o in registry}
    shown = {
        Path(f"catalog/examples/{name}.json"): json.dumps(example, indent=1, ensure_ascii=False) + "\n"
        for name, example in examples.items()
    }
    return {
        Path("README.md"): _ANSWER.sub(lambda marks: marks[1] + readme_answer(examples[SHOWN]) + marks[2], readme),
        Path("docs/selling-credits.md"): _LICENCES.sub(lambda marks: marks[1] + table + marks[2], selling),
        Path("catalog/licences.json"): json.dumps(licences, indent=1) + "\n",
        Path("docs/tools.md"): tool_pages.tools_page(registry),
        Path("docs/sources.md"): tool_pages.sources_page(registry),
        Path("docs/errors.md"): tool_pages.errors_page(PROBLEMS),
        Path("toolserver/client/tools.pyi"): python_types.write_stub(registry),
        Path("clients/typescript/tools.ts"): typescript_types.write_module(registry),
        **pages,
        **shown,
    }


def compose_documents(settings: Settings, root: Path = ROOT) -> dict[Path, str]:
    """Compose every generated file of a checkout, with an example answer of each tool that needs no argument."""
    registry = Registry.load(*settings.tools)
    examples = anyio.run(example_answers, registry, settings)
    return generate(registry, examples, anyio.run(compose_licence_table, registry, settings), root)


def update_files(documents: Mapping[Path, str], *, check: bool = False, root: Path = ROOT) -> list[Path]:
    """Update the generated files and return those that were out of date. With `check`, only return them."""
    changed = [path for path, text in documents.items() if _read(root / path) != text]
    present = [path for folder in ("docs/tools", "catalog/examples") for path in (root / folder).glob("*.*")]
    gone = [path.relative_to(root) for path in present if path.relative_to(root) not in documents]
    if not check:
        for path in changed:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(documents[path], encoding="utf-8")
        for path in gone:
            (root / path).unlink()
    return sorted([*changed, *gone])


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
