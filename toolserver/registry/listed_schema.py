"""Writes the output schemas of `tools/list`: what a model needs to use an answer, in few bytes.

No member is required at the top, and a member that refusals have too may be of their type as well:
strict clients validate refusals against the schema, and would hide those that do not fit.

A client reads a whole tool list into a context window. So the output schemas leave bounds,
formats, remarks and the members around every payload to OpenAPI, and type a large payload
only as deep as there is room. Below that depth, objects only name the members that are always
present. The schemas are valid for every answer, and every schema has one `type`, because
clients with a simpler dialect of JSON Schema refuse lists of types.
"""

import json
from collections.abc import Iterator
from functools import lru_cache

from toolserver.registry.json_schema import Schema
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import BARE, answer_schema, frame_of

MOST_BYTES = 850  # of one schema, unless the names of members alone take more
DEEPEST = 6  # levels of objects and lists
_NULL: Schema = {"type": "null"}
_OF_REFUSALS = {"type": "string", "title": "string", "status": "integer", "detail": "string", "error": "string"}
_OF_REFUSALS |= {"request_id": "string", "next": "object"}
"""The type of each member of a refusal whose name an answer may have at the top for something else."""
_SHOWN = ("data", "stale", "_meta")  # of the members around a payload


@lru_cache(maxsize=256)
def listed_schema(operation: Operation) -> Schema:
    """Return the output schema of a tool for `tools/list`. It is made once; do not modify it."""
    shaped = (_shaped(operation, depth) for depth in range(DEEPEST, 0, -1))
    return next((schema for schema in shaped if _size(schema) <= MOST_BYTES), _shaped(operation, 0))


def _size(schema: Schema) -> int:
    return len(json.dumps(schema, separators=(",", ":")))


def _shaped(operation: Operation, depth: int) -> Schema:
    """Return the schema with `depth` levels of types."""
    schema = answer_schema(operation)
    around = () if frame_of(operation) is BARE else frame_of(operation).names
    members = {n: m for n, m in schema["properties"].items() if n not in around or n in _SHOWN}
    shape = _Shape(schema.get("$defs", {}))
    properties = {name: shape.of_answer_or_refusal(name, member, depth) for name, member in members.items()}
    listed = {"type": "object", "properties": properties}
    return {**listed, "$defs": shape.nullable} if shape.nullable else listed


class _Shape:
    """Writes nodes of one schema. `nullable` gets the definitions of plain kinds that may be null."""

    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self.nullable: dict[str, Schema] = {}

    def of_answer_or_refusal(self, name: str, node: Schema, depth: int) -> Schema:
        """Return the shape of a member at the top, which may also have the type that refusals give to its name."""
        shape = self.of(node, depth)
        kind = _OF_REFUSALS.get(name)
        plain = self.nullable[shape["$ref"].rsplit("/", 1)[1]] if "$ref" in shape else shape
        arms: list[Schema] = plain.get("anyOf", [plain])
        if kind is None or any(arm.get("type") == kind and "enum" not in arm for arm in arms):
            return shape
        return {"anyOf": [*arms, {"type": kind}]}

    def of(self, node: Schema, depth: int) -> Schema:
        """Return the node with one type and `depth` levels of objects and lists below it, or null if it may be null."""
        if isinstance(ref := node.get("$ref"), str):
            return self.of(self._definitions[ref.rsplit("/", 1)[1]], depth)
        arms = list(_arms(node))
        shapes = [self._structure(arm, depth) for arm in arms if arm != _NULL]
        if _NULL not in arms:
            return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
        if len(shapes) > 1 or set(shapes[0]) != {"type"}:
            return {"anyOf": [*shapes, _NULL]}
        kind: str = shapes[0]["type"]
        self.nullable[kind[:3]] = {"anyOf": [*shapes, _NULL]}
        return {"$ref": f"#/$defs/{kind[:3]}"}

    def _structure(self, node: Schema, depth: int) -> Schema:
        if "$ref" in node or "anyOf" in node:
            return self.of(node, depth)
        if "properties" in node:
            return self._object(node, depth)
        outline: Schema = {name: node[name] for name in ("type", "enum") if name in node} or {"type": "object"}
        inner = "items" if "items" in node else "additionalProperties"
        if isinstance(node.get(inner), dict):
            outline[inner] = self.of(node[inner], max(0, depth - 1))
        return outline

    def _object(self, node: Schema, depth: int) -> Schema:
        if depth > 0:
            return {"type": "object", "properties": {n: self.of(m, depth - 1) for n, m in node["properties"].items()}}
        always = node.get("required")
        return {"type": "object", "required": always} if always else {"type": "object"}


def _arms(node: Schema) -> Iterator[Schema]:
    """Yield the kinds of value that a node allows, each as a separate schema."""
    if "anyOf" in node:
        yield from node["anyOf"]
        return
    kinds = node.get("type")
    if not isinstance(kinds, list):
        yield node
        return
    enum = {"enum": [value for value in node["enum"] if value is not None]} if "enum" in node else {}
    yield from (_NULL if kind == "null" else {**node, **enum, "type": kind} for kind in kinds)
