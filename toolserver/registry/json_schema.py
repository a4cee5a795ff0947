"""Makes JSON Schemas that every host and provider accepts.

pydantic's schemas use `const`, null arms, titles and nested `$defs`. Some client or provider
rejects each of these, and one rejected tool makes it reject the whole list. This module
simplifies schemas: no titles, no `const`, no null arm on an input, object roots, references
only to the root's `$defs`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]
_MAPS = ("properties", "$defs", "patternProperties")  # members whose keys are names, not keywords


def input_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a tool's arguments: every reference inlined, optional means absent, never null."""
    schema = model.model_json_schema(mode="validation")
    plain = _plain(_inlined(schema, schema.get("$defs", {}), keep=frozenset()), nullable=False)
    plain.setdefault("properties", {})
    return {"type": "object", **plain}


def output_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a result: nullable fields say so, models used more than once stay in `$defs`."""
    schema = model.model_json_schema(mode="serialization")
    definitions = schema.get("$defs", {})
    keep = frozenset(_repeated(schema, definitions))
    plain = _plain(_inlined(schema, definitions, keep), nullable=True)
    if keep:
        plain["$defs"] = {
            name: _plain(_inlined(definitions[name], definitions, keep), nullable=True) for name in sorted(keep)
        }
        plain = _null_told_once(plain)
    return {"type": "object", **plain}


def _null_told_once(schema: Schema) -> Schema:
    """Move the null arm into a definition that may be null wherever it is used."""
    every, nullable = Counter(_references([schema, *schema["$defs"].values()])), Counter(_null_or(schema))
    always = {name for name, times in every.items() if nullable[name] == times and _foldable(schema["$defs"][name])}

    def told(node: Any) -> Any:
        if isinstance(node, list):
            return [told(item) for item in node]
        if not isinstance(node, dict):
            return node
        if (name := _nullable_reference(node)) in always:
            node = {"$ref": f"#/$defs/{name}"} | {k: v for k, v in node.items() if k != "anyOf"}
        return {key: told(value) for key, value in node.items()}

    folded: Schema = told(schema)
    for name in always:
        folded["$defs"][name]["type"] = [folded["$defs"][name]["type"], "null"]
    return folded


def _foldable(definition: Schema) -> bool:
    """Return True if a type can be added to the definition without changing anything else."""
    return isinstance(definition.get("type"), str) and "enum" not in definition


def _nullable_reference(node: Schema) -> str | None:
    """Return the definition that a node refers to with a null arm, as `_without_null_arm` writes it, or None."""
    match node.get("anyOf"):
        case [{"$ref": str(ref)}, {"type": "null"}]:
            return ref.rsplit("/", 1)[1]
    return None


def _null_or(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _null_or(item)
    elif isinstance(node, dict):
        if (name := _nullable_reference(node)) is not None:
            yield name
        for value in node.values():
            yield from _null_or(value)


def _repeated(schema: Schema, definitions: dict[str, Schema]) -> list[str]:
    """Return the definitions to keep in `$defs`: those referred to more than once, or by themselves."""
    counts: Counter[str] = Counter()

    def count(node: Schema, within: tuple[str, ...]) -> None:
        for name in _references(node):
            counts[name] += 2 if name in within else 1
            if counts[name] == 1:
                count(definitions[name], (*within, name))

    count(schema, ())
    return [name for name, times in counts.items() if times > 1]


def _references(node: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to, without looking into `$defs`."""
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        if isinstance(ref := node.get("$ref"), str):
            yield ref.rsplit("/", 1)[1]
        for key, value in node.items():
            if key != "$defs":
                yield from _references(value)


def _inlined(node: Any, definitions: dict[str, Schema], keep: frozenset[str]) -> Any:
    """Return the node with references replaced by their definitions, except those in `keep`."""
    if isinstance(node, list):
        return [_inlined(item, definitions, keep) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(ref := node.get("$ref"), str):
        name = ref.rsplit("/", 1)[1]
        beside = {k: v for k, v in node.items() if k != "$ref"}
        if name in keep:
            return {"$ref": f"#/$defs/{name}", **beside}
        return {**_inlined(definitions[name], definitions, keep), **_inlined(beside, definitions, keep)}
    return {k: _inlined(v, definitions, keep) for k, v in node.items() if k != "$defs"}


def _plain(node: Any, *, nullable: bool) -> Any:
    """Return the node without titles and `const`, with null arms removed (inputs) or folded into `type` (outputs)."""
    if isinstance(node, list):
        return [_plain(item, nullable=nullable) for item in node]
    if not isinstance(node, dict):
        return node
    plain: Schema = {}
    for key, value in node.items():
        if (key == "title" and isinstance(value, str)) or (key == "default" and value is None):
            continue
        if key in _MAPS:
            plain[key] = {name: _plain(inner, nullable=nullable) for name, inner in value.items()}
        elif key in ("default", "examples", "enum", "const"):
            plain[key] = value
        else:
            plain[key] = _plain(value, nullable=nullable)
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
        plain.setdefault("type", "string")
    return _without_null_arm(plain, nullable=nullable)


def _without_null_arm(node: Schema, *, nullable: bool) -> Schema:
    arms = node.get("anyOf", [])
    rest = [arm for arm in arms if arm.get("type") != "null"]
    if len(rest) == len(arms):
        return node
    if len(rest) > 1:
        return node if nullable else {**node, "anyOf": rest}
    beside = {k: v for k, v in node.items() if k != "anyOf"}
    arm = rest[0]
    if not nullable:
        return {**arm, **beside}
    if isinstance(arm.get("type"), str) and "$ref" not in arm:
        folded = {**arm, "type": [arm["type"], "null"], **beside}
        if "enum" in folded:
            folded["enum"] = [*folded["enum"], None]
        return folded
    return {"anyOf": [arm, {"type": "null"}], **beside}
