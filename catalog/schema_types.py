"""Turns JSON Schemas into types of a programming language for the clients; both languages share this code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from toolserver.registry.json_schema import Schema
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import SHARED, answer_schema


class TypeWords(NamedTuple):
    """How a language writes types. `scalars` are by JSON Schema name, including `null`."""

    scalars: Mapping[str, str]
    one_of: Callable[[Sequence[object]], str]
    list_of: Callable[[str], str]
    map_of: Callable[[str], str]
    anything: str


class ModelField(NamedTuple):
    """A member of an object, with its type in the language."""

    name: str
    type: str
    is_required: bool
    description: str


class ToolTypes(NamedTuple):
    """A tool with the types of its arguments and the name of its payload's type."""

    operation: Operation
    arguments: list[ModelField]
    payload: str


@dataclass
class SchemaTypes:
    """Collects the object types of many schemas by name. A type that all answers share is listed once."""

    words: TypeWords
    models: dict[str, list[ModelField]] = field(default_factory=dict)
    _definitions: Mapping[str, Schema] = field(default_factory=dict)
    _prefix: str = ""

    def add_tool(self, operation: Operation) -> ToolTypes:
        """Return the types of a tool's arguments and payload: `WeatherPayload` is a payload, `WeatherHourly` a part."""
        self._prefix = camel_case(operation.name)
        self._definitions = operation.input_schema.get("$defs", {})
        arguments = self._fields(operation.input_schema, "")
        schema = answer_schema(operation, full=True)
        self._definitions = schema.get("$defs", {})
        return ToolTypes(operation, arguments, self._object(schema, "Payload"))

    def _fields(self, schema: Schema, inside: str) -> list[ModelField]:
        required = schema.get("required", [])
        return [
            ModelField(name, self._type(member, inside + camel_case(name)), name in required, _described(member))
            for name, member in schema.get("properties", {}).items()
        ]

    def _object(self, schema: Schema, name: str) -> str:
        """Return the name of an object type, adding it if it is new. Several types in one place are numbered."""
        full = name if name in SHARED else self._prefix + name
        fields = self._fields(schema, "" if name == "Payload" else name)
        return next(
            each
            for each in (f"{full}{number}".removesuffix("1") for number in count(1))
            if self.models.setdefault(each, fields) == fields
        )

    def _type(self, schema: Schema, name: str) -> str:
        if "$ref" in schema:
            target = schema["$ref"].rsplit("/", 1)[1]
            return self._type(self._definitions[target], target)
        if "anyOf" in schema:
            return join_types(self._type(arm, name) for arm in schema["anyOf"])
        if "enum" in schema:
            return self.words.one_of(schema["enum"])
        kinds = schema.get("type")
        listed = kinds if isinstance(kinds, list) else [kinds]
        return join_types(self._kind(kind, schema, name) for kind in listed)

    def _kind(self, kind: str | None, schema: Schema, name: str) -> str:
        if kind is None:
            return self.words.anything
        if kind == "array":
            return self.words.list_of(self._type(schema["items"], name))
        if kind != "object":
            return self.words.scalars[kind]
        if schema.get("properties"):
            return self._object(schema, name)
        values = schema.get("additionalProperties")
        return self.words.map_of(self._type(values, name) if isinstance(values, dict) else self.words.anything)


def join_types(types: Iterable[str]) -> str:
    """Return a union with each type once."""
    return " | ".join(dict.fromkeys(types))


def camel_case(name: str) -> str:
    """Return a name in camel case: `crypto_movers` → `CryptoMovers`; `_meta` → `Meta`."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _described(schema: Schema) -> str:
    return " ".join(str(schema.get("description", "")).split())
