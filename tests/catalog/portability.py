"""What model providers and MCP hosts enforce on a tool but no client library checks offline."""

import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
COMPOSITION = ("anyOf", "oneOf", "allOf", "not", "if")


def faults(name: str, description: str, parameters: dict[str, Any]) -> list[str]:
    """Every reason why some provider would refuse this definition. One refused tool takes the whole list with it."""
    return [*_named(name, description), *_root(parameters), *_inside(parameters, parameters, "")]


def _named(name: str, description: str) -> Iterator[str]:
    if not NAME.fullmatch(name):
        yield f"the name {name!r} is not 1-64 of letters, digits, _ and -"
    if not 20 <= len(description) <= 400:
        yield f"the description has {len(description)} characters"


def _root(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        yield "the root is not an object with properties"
    yield from (f"{word} at the root" for word in COMPOSITION if word in schema)
    yield from (f"{missing} is required but not described" for missing in _undescribed(schema))


def _undescribed(schema: dict[str, Any]) -> list[str]:
    return [name for name in schema.get("required", []) if name not in schema.get("properties", {})]


def _inside(node: Any, root: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _inside(item, root, f"{path}/{index}")
        return
    if not isinstance(node, dict):
        return
    if "const" in node:
        yield f"{path}: const"
    if node.get("type") == "null" or (isinstance(node.get("type"), list) and "null" in node["type"]):
        yield f"{path}: null as a type"
    if isinstance(node.get("$ref"), str) and node["$ref"].removeprefix("#/$defs/") not in root.get("$defs", {}):
        yield f"{path}: a reference that leads nowhere"
    for key, value in node.items():
        if key not in ("default", "enum", "examples"):
            yield from _inside(value, root, f"{path}/{key}")
