"""Decides where each argument of an operation goes in an HTTP request: the path, the query or the body."""

import re
from collections.abc import Mapping
from typing import Literal

from toolserver.registry.registry import Operation

Place = Literal["path", "query", "body"]

_PLACEHOLDER = re.compile(r"{(\w+)}")


def place_arguments(operation: Operation) -> dict[str, Place]:
    """Return the place of every argument by name, path arguments first: `{"id": "path", "limit": "query"}`."""
    properties = operation.input_schema["properties"]
    in_path = [name for name in _PLACEHOLDER.findall(operation.path) if name in properties]
    elsewhere: Place = "body" if operation.takes_body else "query"
    return {**dict.fromkeys(in_path, "path"), **{name: elsewhere for name in properties if name not in in_path}}


def names_in(placed: Mapping[str, Place], *places: Place) -> list[str]:
    """Return the arguments that go to one of these places."""
    return [name for name, place in placed.items() if place in places]


def has_placeholders(path: str) -> bool:
    """Return True if the path contains arguments."""
    return bool(_PLACEHOLDER.search(path))
