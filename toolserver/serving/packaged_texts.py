"""Read the texts in the package: the changelog, the guides, the example answers, licences and facts about sources."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from toolserver.registry.licence_table import LicenceTable
from toolserver.registry.source_facts import SourceFacts, read_facts


def read_changelog() -> str:
    """Read CHANGELOG.md: beside the package if installed, at the project's root in a checkout."""
    here = Path(__file__).resolve().parent.parent
    places = (folder / "CHANGELOG.md" for folder in (here, here.parent))
    return next((path.read_text(encoding="utf-8") for path in places if path.is_file()), "# Changelog\n")


def read_guides() -> dict[str, str]:
    """Read the documents in docs/ by name, without the pages of tools."""
    folder = _find_docs()
    guides = sorted(folder.glob("*.md")) if folder else []
    return {path.stem: path.read_text(encoding="utf-8") for path in guides}


def read_guide(name: str) -> str | None:
    """Read one of these documents; None if there is none of this name."""
    folder = _find_docs()
    if folder is None or not re.fullmatch(r"[\w-]{1,64}", name, re.ASCII):
        return None
    path = folder / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _find_docs() -> Path | None:
    """Return the folder docs/, beside the package if installed, at the project's root in a checkout."""
    here = Path(__file__).resolve().parent.parent
    return next((place for place in (here / "docs", here.parent / "docs") if place.is_dir()), None)


def read_examples() -> dict[str, Any]:
    """Read the example answers that `toolserver docs` has written, by tool name."""
    folder = files("catalog").joinpath("examples")
    named = {entry.name.removesuffix(".json"): entry for entry in folder.iterdir() if entry.name.endswith(".json")}
    return {name: json.loads(named[name].read_text(encoding="utf-8")) for name in sorted(named)}


def read_samples() -> dict[str, bytes]:
    """Read the whole sample answers of the premium tools that `toolserver docs` has written, by tool name, as JSON."""
    folder = files("catalog").joinpath("samples")
    named = {entry.name.removesuffix(".json"): entry for entry in folder.iterdir() if entry.name.endswith(".json")}
    return {name: named[name].read_bytes() for name in sorted(named)}


def read_licence_table() -> LicenceTable:
    """Read what each licence policy removes from this package's premium tools, as `toolserver docs` found it."""
    text = files("catalog").joinpath("licences.json").read_text(encoding="utf-8")
    return LicenceTable(**json.loads(text))


def read_shipped_facts() -> dict[str, SourceFacts]:
    """Read what is known of this package's sources, by name."""
    return read_facts(files("catalog").joinpath("source_facts.json").read_bytes())


def read_texts() -> dict[str, Any]:
    """Read all texts, by the names that the pages use."""
    return {
        "changes": read_changelog(),
        "examples": read_examples(),
        "samples": read_samples(),
        "licences": read_licence_table(),
        "guides": read_guides(),
    }
