"""Finds packages of other projects that hide one of ours, which have names that other projects use too.

`python -m toolserver` searches the working directory first, so a folder `tools` or a Django app `catalog` is imported
instead of the package that was installed with `toolserver`.
"""

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import toolserver

PACKAGES = ("catalog", "rest_bridge", "tools")  # beside `toolserver` in the same distribution


def describe_hidden() -> str | None:
    """Return one line that names every foreign package that hides one of ours, its place and the remedy, or None."""
    ours = Path(toolserver.__file__).resolve().parents[1]
    places = {name: _place(find_spec(name)) for name in PACKAGES}
    hiding = [f"{name} ({place})" for name, place in places.items() if place and ours not in place.parents]
    missing = [name for name, place in places.items() if not place]
    if hiding:
        return (
            f"toolserver has packages of its own named like these, which Python finds first: {', '.join(hiding)}. "
            "Start `toolserver` or `python -P -m toolserver`, which do not search the working directory, or change "
            "PYTHONPATH if that names the place."
        )
    if missing:
        return (
            f"toolserver is not installed completely: {', '.join(missing)} is missing. Install agent-toolserver again."
        )
    return None


def _place(spec: ModuleSpec | None) -> Path | None:
    """Return the file of a module, or the folder of a package without an `__init__.py`."""
    if spec is None:
        return None
    places = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or ())
    return Path(places[0]).resolve() if places else None
