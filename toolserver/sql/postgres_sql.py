"""Translate the SQL of the stores for PostgreSQL's driver, with numbered placeholders."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from toolserver.sql.connection import Parameters

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'      # text
    |"(?:[^"]|"")*"         # a name
    |--[^\n]*               # a comment
    |::\w+                  # a type
    |\?(?P<number>\d*)      # a placeholder, numbered or not
    |(?<![\w:]):(?P<name>[a-z_]\w*)""",
    re.VERBOSE,
)
_GIVES_ROWS = re.compile(r"\s*(SELECT|WITH|VALUES|SHOW)\b", re.IGNORECASE)
_RETURNING = re.compile(r"\bRETURNING\b")


class PostgresStatement(NamedTuple):
    """A statement with `$1` and so on. `names` are the named parameters in order, if parameters are named."""

    sql: str
    names: tuple[str, ...]
    gives_rows: bool

    def bind(self, parameters: Parameters) -> tuple[Any, ...]:
        """Return the values in the order of their numbers."""
        if isinstance(parameters, Mapping):
            return tuple(parameters[name] for name in self.names)
        return tuple(parameters)


@lru_cache(maxsize=1024)
def translate(sql: str) -> PostgresStatement:
    """Return the statement with numbered placeholders. Texts, names and comments are unchanged."""
    names: list[str] = []
    marks = 0

    def number(found: re.Match[str]) -> str:
        nonlocal marks
        if name := found["name"]:
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        if found["number"] is None:
            return found[0]
        if found["number"]:
            return f"${found['number']}"
        marks += 1
        return f"${marks}"

    text = _TOKEN.sub(number, sql)
    gives_rows = _GIVES_ROWS.match(text) is not None or _RETURNING.search(text) is not None
    return PostgresStatement(text, tuple(names), gives_rows)
