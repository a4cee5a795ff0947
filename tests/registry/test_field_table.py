"""A schema as rows for people: every member once, with its path, kind, bounds and default."""

import pytest

from tests.calls.toy import number, premium_report
from toolserver.registry.field_table import Row, kind, payload_rows, rows
from toolserver.registry.registry import operation_of

SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "description": "Who", "maxLength": 9},
        "size": {"type": "integer", "default": 3, "minimum": 1},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "by_name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Item"}},
    },
    "$defs": {"Item": {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}},
}


def test_every_member_is_a_row_in_order_and_depth_first():
    assert rows(SCHEMA) == [
        Row("name", "string, at most 9", True, None, "Who"),
        Row("size", "integer, from 1", False, 3, ""),
        Row("items", "list of object", False, None, ""),
        Row("items[].at", "string (date-time)", False, None, ""),
        Row("by_name", "map to object", False, None, ""),
        Row("by_name.*.at", "string (date-time)", False, None, ""),
    ]


def test_a_model_that_contains_itself_ends():
    node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Node"}}}

    assert 5 < len(rows({**node, "$defs": {"Node": node}})) < 20


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["number", "null"]}, "number or null"),
        ({"enum": ["a"]}, '"a"'),
        ({"enum": ["a", None]}, "one of a, null"),
        ({"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]}, "object or null"),
        ({"type": "array"}, "list of any"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 9}, "number, above 0 to 9"),
        ({}, "any"),
    ],
)
def test_a_kind_is_said_in_words(schema, words):
    assert kind(schema, SCHEMA["$defs"]) == words


@pytest.mark.parametrize("function", [number, premium_report])
def test_the_members_around_every_payload_are_left_out(function):
    paths = {row.path for row in payload_rows(operation_of(function))}

    assert not paths & {"source", "endpoint", "stale", "_meta", "warning"}
    assert paths >= ({"data", "data.value"} if function is number else {"one", "two"})
