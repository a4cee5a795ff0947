"""Check by schema whether the path of a condition can lead to a value in an endpoint's payloads."""

from collections.abc import Iterator
from typing import Any

from toolserver.core.similar_names import find_similar

Schema = dict[str, Any]


def check_path(path: str, schema: Schema) -> str | None:
    """Describe what is wrong with a path, with the valid names; None if the path can lead to a value."""
    here, walked = [schema], ""
    for step in path.split("."):
        options = [option for one in here for option in _options(one, schema)]
        found = [child for option in options for child in _children(option, step)]
        if not found:
            return _complain(walked, step, options)
        here, walked = found, f"{walked}.{step}" if walked else step
    return None


def _options(schema: Schema, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """Yield the alternatives of a schema: follow references and split unions."""
    if depth > 20:
        return
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from _options(root.get("$defs", {}).get(name, {}), root, depth + 1)
        return
    unions = [option for word in ("anyOf", "oneOf", "allOf") for option in schema.get(word, [])]
    for option in unions:
        yield from _options(option, root, depth + 1)
    if not unions:
        yield schema


def _children(schema: Schema, step: str) -> Iterator[Schema]:
    """Yield where a step leads: a named member, any member of a free-form object, or an item of a list."""
    if not schema:
        yield {}
    if step in schema.get("properties", {}):
        yield schema["properties"][step]
    elif schema.get("type") == "object" and schema.get("additionalProperties", True) is not False:
        more = schema.get("additionalProperties", True)
        if "properties" not in schema or isinstance(more, dict):
            yield more if isinstance(more, dict) else {}
    if schema.get("type") == "array" and step.isdecimal():
        yield schema.get("items", {})


def _complain(walked: str, step: str, options: list[Schema]) -> str:
    where = f"{walked} has" if walked else "The payload has"
    names = sorted({name for option in options for name in option.get("properties", {})})
    if not names:
        return f"{where} no member {step}."
    near = find_similar(step, names, most=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"{where} no member {step}; it has: {', '.join(names)}.{hint}"
