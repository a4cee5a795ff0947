"""Keep marks outside the database that only rise, so that an older copy of the database is recognised.

The marks are in one JSON object beside the keys, `keys/high-water.json`: how many transactions were sealed (`rows`),
the last signed state of the log of uncharged calls (`log`), and the number of the next deposit address (`address`). A
backup of the database must not restore older marks: `toolserver db restore` changes only `rows`. If instances share a
database, `postgres_marks` has the marks of all of them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolserver.core.private_file import hold_folder, write_private
from toolserver.errors import ToolserverError

FILE = "keys/high-water.json"  # below the data directory


class MarksBroken(ToolserverError):
    """The file of marks cannot be read. Nothing is signed until an operator has checked it."""


class HighWater:
    """The marks of one data directory. Several processes may raise them at the same time."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE

    def read_all(self) -> dict[str, Any]:
        """Return every mark by its name; none if there is no file. Raises MarksBroken."""
        return self._read()

    def read(self, name: str) -> Any:
        """Return a mark; None if there is none yet. Raises MarksBroken."""
        return self._read().get(name)

    def raise_to(self, name: str, number: int) -> int:
        """Raise a number, keep a greater one, and return the result. Raises MarksBroken."""
        return int(self.change(name, lambda before: number if before is None else max(before, number)))

    def change(self, name: str, rule: Callable[[Any], Any]) -> Any:
        """Replace a mark with the result of the rule, on disk. Raises MarksBroken."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with hold_folder(self.path.parent):
            marks = self._read()
            after = rule(marks.get(name))
            if after != marks.get(name):
                write_private(self.path, json.dumps({**marks, name: after}, indent=2) + "\n")
        return after

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise MarksBroken(f"{self.path} is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise MarksBroken(f"{self.path} is not a JSON object")
        return found
