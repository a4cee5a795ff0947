"""The output schemas of tool lists: short, of one type each, and true of every answer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.catalog.tiny import FACTS, TINY
from tests.json_schemas import check_schema, prepare, validate
from tests.registry.test_response_schema import SOURCED, composed, references
from tests.size import a_share
from toolserver.mcp.definitions import definition
from toolserver.mcp.messages import encode
from toolserver.registry.error_codes import PROBLEMS, example
from toolserver.registry.listed_schema import MOST_BYTES, listed_schema
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.response_schema import frame_of

PROJECT = Registry.load("tools")

every_tool = pytest.mark.parametrize("operation", [*PROJECT, *TINY], ids=lambda operation: operation.name)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema, itself included."""
    if isinstance(schema, list):
        for item in schema:
            yield from nodes(item)
    elif isinstance(schema, dict):
        yield schema
        for name, value in schema.items():
            inner = list(value.values()) if name in ("properties", "$defs") else [value]
            for node in inner if name not in ("enum", "required", "type", "$ref") else ():
                yield from nodes(node)


@every_tool
def test_every_schema_in_it_has_one_type_and_says_something(operation):
    """What the Inspector's `--strict` warns of."""
    for node in nodes(listed_schema(operation)):
        assert not isinstance(node.get("type"), list), node
        assert {"type", "anyOf", "$ref", "enum"} & node.keys(), node


@every_tool
def test_it_is_an_object_with_references_to_its_own_root_only(operation):
    schema = listed_schema(operation)
    check_schema(schema)
    assert schema["type"] == "object"
    assert references(schema) <= {f"#/$defs/{name}" for name in schema.get("$defs", {})}


@every_tool
def test_every_refusal_fits(operation):
    """Gemini CLI hides one that does not."""
    members = {"next": {"tool": "x", "how": "x"}, "errors": [], "did_you_mean": [], "limit": "x", "required": 2}
    schema = prepare(listed_schema(operation))
    for problem in PROBLEMS.values():
        schema.validate(example(problem, facts=FACTS, request_id="req_1") | members)


@pytest.mark.parametrize("operation", a_share(SOURCED, 3, first=2), ids=lambda operation: operation.name)
async def test_what_the_service_answers_fits(operation):
    validate(await composed(operation), listed_schema(operation))


@pytest.mark.parametrize("operation", [o for o in SOURCED if o.tier is Tier.FREE], ids=lambda operation: operation.name)
async def test_an_answer_without_data_fits(operation):
    down = {source.name for source in operation.sources}
    answer = await composed(operation, down=down)
    validate(answer, listed_schema(operation))


@every_tool
def test_the_members_of_the_payload_are_named(operation):
    schema, whole = listed_schema(operation), operation.data_schema
    named = schema["properties"]["data"] if operation.enveloped else schema
    if "properties" in whole and not operation.enveloped:
        assert whole["properties"].keys() - {*frame_of(operation).names} <= named["properties"].keys()
    elif "properties" in whole:
        arm = named.get("anyOf", [named])[0]
        assert {*whole.get("required", ())} <= {*arm.get("properties", ()), *arm.get("required", ())}


@every_tool
def test_a_small_payload_is_typed_whole_and_a_large_one_as_deep_as_there_is_room(operation):
    size = len(json.dumps(listed_schema(operation), separators=(",", ":")))
    assert size <= MOST_BYTES * 1.4  # naming members is the least that is done


def test_a_value_that_may_be_null_is_defined_once():
    members = listed_schema(PROJECT["predictions"])
    item = members["properties"]["data"]["anyOf"][0]["items"]
    assert item["properties"]["url"] == {"$ref": "#/$defs/str"}
    assert members["$defs"]["str"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_what_is_too_deep_names_its_members():
    series = listed_schema(PROJECT["premium_agent_context"])["properties"]["context"]["properties"]
    assert series["datetime"] == {
        "type": "object",
        "required": ["iso", "unix_ms", "human_readable_utc", "weekday"],
    }


def test_the_core_tools_are_listed_in_30_kilobytes_and_in_13_without_output_schemas():
    core = PROJECT.chosen()
    for token_argument in (False, True):
        full, short = (
            encode([definition(o, output_schema=on, token_argument=token_argument) for o in core])
            for on in (True, False)
        )
        assert len(full) < 30_000
        assert len(short) < 13_000
        everything, bare = (
            encode([definition(o, output_schema=on, token_argument=token_argument) for o in PROJECT])
            for on in (True, False)
        )
        assert len(everything) < 97_000
        assert len(bare) < 41_400
