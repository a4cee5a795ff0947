"""Writes toolserver/client/tools.pyi: every tool as a typed method of the Python client."""

import json
import keyword
from collections.abc import Iterator

from catalog.schema_types import ModelField, SchemaTypes, ToolTypes, TypeWords
from toolserver.registry.registry import Registry

WORDS = TypeWords(
    scalars={
        "string": "str",
        "integer": "int",
        "number": "float",
        "boolean": "bool",
        "null": "None",
    },
    one_of=lambda values: f"Literal[{', '.join(map(_literal, values))}]",
    list_of=lambda item: f"list[{item}]",
    map_of=lambda value: f"dict[str, {value}]",
    anything="Any",
)


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


_HEAD = '''\
"""The types of the tools. Written by `toolserver docs` from the registry: change a tool, not this file."""

from typing import Any, Literal, NotRequired, TypedDict

from toolserver.client.answer import ToolAnswer
'''


def write_stub(registry: Registry) -> str:
    """Return the text of the file: the types of payloads, and the methods of both clients."""
    types = SchemaTypes(WORDS)
    tools = [types.add_tool(operation) for operation in registry]
    models = [line for name, fields in types.models.items() for line in _model(name, fields)]
    methods = [
        line for prefix, head in (("", "Tools"), ("async ", "AsyncTools")) for line in _methods(head, prefix, tools)
    ]
    return "\n".join([_HEAD, *models, *methods])


def _model(name: str, fields: list[ModelField]) -> Iterator[str]:
    """Yield a TypedDict, in functional form if a member's name is a Python keyword."""
    if any(keyword.iskeyword(field.name) for field in fields):
        members = ", ".join(f'"{field.name}": {_member(field)}' for field in fields)
        yield f'{name} = TypedDict("{name}", {{{members}}})\n'
        return
    yield f"class {name}(TypedDict):"
    yield from (f"    {field.name}: {_member(field)}" for field in fields)
    yield ""


def _member(field: ModelField) -> str:
    return field.type if field.is_required else f"NotRequired[{field.type}]"


def _methods(name: str, prefix: str, tools: list[ToolTypes]) -> Iterator[str]:
    yield f"class {name}:"
    for tool in tools:
        arguments = "".join(
            f", {_argument(field)}" for field in sorted(tool.arguments, key=lambda f: not f.is_required)
        )
        star = ", *" if tool.arguments else ""
        yield f"    {prefix}def {tool.operation.name}(self{star}{arguments}) -> ToolAnswer[{tool.payload}]:"
        yield f'        """{tool.operation.description}"""'
    yield ""


def _argument(field: ModelField) -> str:
    """Return a parameter. A Python keyword gets an underscore at its end, as in the code of a tool."""
    name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
    return f"{name}: {field.type}" if field.is_required else f"{name}: {field.type} | None = None"
