"""Writes a schema as a flat list of fields for people: one row per member, with its path, kind and bounds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from toolserver.registry.json_schema import Schema
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import answer_schema, frame_of

_DEEPEST = 8  # recursive models end at this depth


class Row(NamedTuple):
    """One field. `path` is dotted; `[]` marks the items of a list and `.*` the values of a map."""

    path: str
    kind: str
    required: bool
    default: Any
    description: str


def rows(schema: Schema) -> list[Row]:
    """Return every member of an object schema and of its nested schemas, in order, depth first."""
    return list(_members(schema, schema.get("$defs", {}), ""))


def payload_rows(operation: Operation) -> list[Row]:
    """Return the rows of an answer without the members around every payload."""
    around = frame_of(operation).names
    return [row for row in rows(answer_schema(operation)) if row.path not in around]


def _members(schema: Schema, definitions: dict[str, Schema], prefix: str) -> Iterator[Row]:
    if prefix.count(".") + prefix.count("[]") > _DEEPEST:
        return
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        resolved = {**_resolved(member, definitions), **{k: v for k, v in member.items() if k != "$ref"}}
        path = prefix + name
        yield Row(
            path,
            kind(resolved, definitions),
            name in required,
            resolved.get("default"),
            resolved.get("description", ""),
        )
        yield from _inside(resolved, definitions, path)


def _inside(schema: Schema, definitions: dict[str, Schema], path: str) -> Iterator[Row]:
    """Yield the members inside a field: of objects, list items and map values."""
    for arm in (_resolved(a, definitions) for a in schema.get("anyOf", [schema])):
        yield from _members(arm, definitions, f"{path}.")
        if isinstance(arm.get("items"), dict):
            yield from _inside(_resolved(arm["items"], definitions), definitions, f"{path}[]")
        if isinstance(arm.get("additionalProperties"), dict):
            yield from _inside(_resolved(arm["additionalProperties"], definitions), definitions, f"{path}.*")


def _resolved(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return definitions.get(name, schema)


def kind(schema: Schema, definitions: dict[str, Schema]) -> str:
    """Return the kind of value as text: `number or null`, `string (date-time)`, `one of a, b`, `list of object`."""
    schema = _resolved(schema, definitions)
    if "enum" in schema:
        values = ["null" if value is None else str(value) for value in schema["enum"]]
        return f"one of {', '.join(values)}" if len(values) > 1 else f'"{values[0]}"'
    if "anyOf" in schema:
        return " or ".join(kind(arm, definitions) for arm in schema["anyOf"])
    types = schema.get("type", "any")
    named = [_named(t, schema, definitions) for t in (types if isinstance(types, list) else [types])]
    return " or ".join(named) + _bounds(schema)


def _named(name: str, schema: Schema, definitions: dict[str, Schema]) -> str:
    if name == "array":
        return f"list of {kind(schema.get('items', {}), definitions)}"
    if name == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {kind(schema['additionalProperties'], definitions)}"
    return f"{name} ({schema['format']})" if name == "string" and "format" in schema else name


_BOUNDS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "exclusiveMaximum": "below",
    "minItems": "at least",
    "maxItems": "at most",
    "minLength": "at least",
    "maxLength": "at most",
    "pattern": "matching",
}


def _bounds(schema: Schema) -> str:
    words = " ".join(f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema)
    return f", {words}" if words else ""
