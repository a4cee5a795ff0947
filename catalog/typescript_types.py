"""Writes clients/typescript/tools.ts: the arguments and the payload of every tool, as TypeScript types."""

import json
from collections.abc import Iterator, Sequence

from catalog.schema_types import ModelField, SchemaTypes, ToolTypes, TypeWords
from toolserver.registry.registry import Registry


def _one_of(values: Sequence[object]) -> str:
    return " | ".join(json.dumps(value) for value in values)


WORDS = TypeWords(
    scalars={"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"},
    one_of=_one_of,
    list_of=lambda item: f"Array<{item}>",
    map_of=lambda value: f"Record<string, {value}>",
    anything="unknown",
)
_HEAD = "// Written by `toolserver docs` from the registry: change a tool, not this file.\n"


def write_module(registry: Registry) -> str:
    """Return the text of the file: an interface for each object, and `Tools`, which has the tools by name."""
    types = SchemaTypes(WORDS)
    tools = [types.add_tool(operation) for operation in registry]
    models = [line for name, fields in types.models.items() for line in _interface(name, fields)]
    return "\n".join([_HEAD, *models, "export interface Tools {", *(_tool(tool) for tool in tools), "}", ""])


def _interface(name: str, fields: list[ModelField]) -> Iterator[str]:
    yield f"export interface {name} {{"
    yield from (
        f"  {_described(field)}{field.name}{'' if field.is_required else '?'}: {field.type};" for field in fields
    )
    yield "}\n"


def _tool(tool: ToolTypes) -> str:
    arguments = " ".join(_argument(field) for field in tool.arguments)
    arguments_type = f"{{ {arguments} }}" if arguments else "Record<string, never>"
    described = _comment(tool.operation.description)
    return f"  {described}{tool.operation.name}: {{ arguments: {arguments_type}; payload: {tool.payload} }};"


def _argument(field: ModelField) -> str:
    """Return a member of the arguments. An optional argument may also be null."""
    name = field.name if field.is_required else f"{field.name}?"
    return f"{_described(field)}{name}: {field.type if field.is_required else f'{field.type} | null'};"


def _described(field: ModelField) -> str:
    return _comment(field.description) if field.description else ""


def _comment(text: str) -> str:
    """Return a comment, escaped so that the text cannot end it."""
    return f"/** {text.replace('*/', '* /')} */ "
