"""Describes what an offer sells as the extension `bazaar` of x402, for facilitators that list what they can pay. Pure.

The description travels in a header, and clients send it back with their payment. So it has no
words: only the names, types and bounds of arguments, and the shape of the answer as
`tools/list` shows it.
"""

from functools import lru_cache
from typing import Any

from toolserver.money.x402.wire import BAZAAR
from toolserver.registry.listed_schema import listed_schema
from toolserver.registry.registry import Operation

_WORDS = frozenset({"title", "description", "examples"})
Object = dict[str, Any]


@lru_cache(maxsize=256)
def describe_discovery(operation: Operation) -> Object:
    """Return `extensions` of an offer: how the operation is called over HTTP, and the shape of its answer.

    `schema` describes `info`, as the extension requires. It is made once; do not modify it.
    """
    output = dict(listed_schema(operation))
    definitions = {"$defs": output.pop("$defs")} if "$defs" in output else {}  # references start at the root
    about_input = {"type": {"type": "string", "const": "http"}, "method": {"type": "string", "const": operation.method}}
    info: Object = {"type": "http", "method": operation.method}
    arguments = _without_words(operation.input_schema)
    if operation.takes_body:
        info |= {"bodyType": "json", "body": _example_body(operation)}
        about_input |= {"bodyType": {"type": "string", "const": "json"}, "body": arguments}
    else:
        about_input |= {"queryParams": arguments}
    required = [name for name in about_input if name != "queryParams"]
    properties = {
        "input": {"type": "object", "properties": about_input, "required": required, "additionalProperties": False},
        "output": {"type": "object", "properties": {"type": {"const": "json"}, "example": output}},
    }
    schema = {"type": "object", "properties": properties, "required": ["input"], **definitions}
    return {BAZAAR: {"info": {"input": info, "output": {"type": "json"}}, "schema": schema}}


def _example_body(operation: Operation) -> Object:
    """Return a body with the first example of every argument that has one."""
    properties: Object = operation.input_schema["properties"]
    return {name: argument["examples"][0] for name, argument in properties.items() if "examples" in argument}


def _without_words(node: Any) -> Any:
    """Return a schema of arguments without the texts that are for readers. Names of arguments stay."""
    if isinstance(node, list):
        return [_without_words(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        name: {key: _without_words(each) for key, each in value.items()}
        if name == "properties"
        else _without_words(value)
        for name, value in node.items()
        if name not in _WORDS
    }
