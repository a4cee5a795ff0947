"""The texts that come with the package: the changelog, the example answers, and what licence policies leave."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from toolserver.registry.licence_table import LicenceTable


def read_changelog() -> str:
    """CHANGELOG.md: beside the package when installed, at the project's root when run from a checkout."""
    here = Path(__file__).resolve().parent.parent
    found = (folder / "CHANGELOG.md" for folder in (here, here.parent))
    return next((path.read_text(encoding="utf-8") for path in found if path.is_file()), "# Changelog\n")


def read_examples() -> dict[str, Any]:
    """The example answers that `toolserver docs` has written, by tool name."""
    folder = files("catalog").joinpath("examples")
    named = {entry.name.removesuffix(".json"): entry for entry in folder.iterdir() if entry.name.endswith(".json")}
    return {name: json.loads(named[name].read_text(encoding="utf-8")) for name in sorted(named)}


def read_licence_table() -> LicenceTable:
    """What each licence policy takes from the premium tools of this package, as `toolserver docs` has found it."""
    text = files("catalog").joinpath("licences.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]
