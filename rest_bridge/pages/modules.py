"""Reads what the scripts of pages import: a page that names all of them spares a browser the search."""

import functools
import re

from rest_bridge.static_files import read_static_files

IMPORT = re.compile(r'^import \{ (?P<names>[^}]+) \} from "\./(?P<module>[\w.]+)";\n', re.MULTILINE)


@functools.cache
def list_modules(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return these files of `static/js` and all that they import, each after those that it imports.

    What a module imports only when it needs it is not among them.
    """
    listed: dict[str, None] = {}
    for entry in entries:
        imported = tuple(found["module"] for found in IMPORT.finditer(read_module(entry)))
        listed |= dict.fromkeys((*list_modules(imported), entry))
    return tuple(listed)


def read_module(name: str) -> str:
    """Return the text of a file of `static/js`. Raises KeyError if there is none."""
    return read_static_files()[f"js/{name}"].body.decode()
