"""The fields of answers that nothing describes: of every tool, and of the other bodies in the API description."""

from collections.abc import Iterator
from typing import Any

from rest_bridge.openapi.document import openapi
from toolserver.registry.field_table import rows
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.response_schema import answer_schema
from toolserver.registry.site_facts import SiteFacts

VALUES = {"default", "enum", "example", "examples"}  # members of a schema that hold data
WHEN_NONE = ("null", "absent")  # the words that say when a field has no value


def list_silent_fields(registry: Registry) -> list[str]:
    """The fields without a description, members around payloads included."""
    of_tools = [name for operation in registry for name in list_silent_rows(operation)]
    document = openapi(registry, SiteFacts("https://data.example", "data.example"))
    return [*of_tools, *list_silent_members(document, document)]


def list_silent_rows(operation: Operation) -> Iterator[str]:
    """The fields of a tool's whole answer that have no description."""
    for row in rows(answer_schema(operation, full=True)):
        if not row.description:
            yield f"{operation.name} {row.path}"


def list_unclear_nulls(operation: Operation) -> Iterator[str]:
    """The fields of a tool's payload that may be null without a word on what null means."""
    for row in rows(operation.data_schema):
        may_be_null = " or null" in row.kind or ", null" in row.kind
        if may_be_null and not any(word in row.description.lower() for word in WHEN_NONE):
            yield f"{operation.name} {row.path}"


def list_silent_members(node: Any, document: dict[str, Any], path: str = "") -> Iterator[str]:
    """The members of objects, anywhere in an API description, that neither they nor their component describe."""
    if isinstance(node, list):
        for index, each in enumerate(node):
            yield from list_silent_members(each, document, f"{path}/{index}")
    elif isinstance(node, dict):
        members = node.get("properties")
        if isinstance(members, dict):
            yield from (f"{path} {name}" for name, member in members.items() if not describe(member, document))
        for key, value in node.items():
            if key not in VALUES:
                yield from list_silent_members(value, document, f"{path}/{key}")


def describe(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """The description of a schema, or of the component that it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    component = document["components"]["schemas"].get(name, {})
    return str(schema.get("description") or component.get("description", ""))
