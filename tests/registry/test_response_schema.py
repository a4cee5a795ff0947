"""The schemas of whole answers, against answers that the service really composes."""

import importlib
import json
import pkgutil
from datetime import UTC, datetime

import anyio
import pytest

import tools.simulated
from tests.catalog.portability import NAME
from tests.catalog.tiny import TINY, Sight
from tests.json_schemas import check_schema, validate
from tests.size import a_share
from tests.tools.desk import NOW, SimDesk
from toolserver.calls.response import AnswerOrigin
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import ManualClock
from toolserver.context.context import ToolContext
from toolserver.core.models import Payload
from toolserver.registry.field_table import rows
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.registry.response_schema import answer_schema, nullable
from toolserver.world.model import World

for twin in pkgutil.iter_modules(tools.simulated.__path__):
    importlib.import_module(f"tools.simulated.{twin.name}")

PROJECT = Registry.load("tools")
SOURCED = [operation for operation in PROJECT if operation.sources]

GIVEN: dict[str, dict[str, object]] = {}  # arguments for tools that cannot be called without

every_tool = pytest.mark.parametrize("operation", [*PROJECT, *TINY], ids=lambda operation: operation.name)
both_levels = pytest.mark.parametrize("full", [True, False], ids=["full", "compact"])


def references(node):
    if isinstance(node, list):
        return {ref for item in node for ref in references(item)}
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
    return own | {ref for value in node.values() for ref in references(value)}


async def composed(operation, *, down=()):
    """The answer from the simulated world."""
    return await composed_with(operation, GIVEN.get(operation.name, {}), down=down)


async def composed_with(operation, given, *, down=()):
    """The answer to these arguments."""
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    arguments = operation.arguments.model_validate(given)
    async with anyio.create_task_group() as tasks:
        desk, origin = SimDesk(World(1, NOW), set(down)), AnswerOrigin("data.example")
        answers = ResponseCache(desk, clock=clock, tasks=tasks, origin=origin)
        rendered = await answers.compose(operation, arguments)
    return json.loads(rendered.payload)


@every_tool
@both_levels
def test_an_answer_schema_is_an_object_with_references_to_its_own_root_only(operation, full):
    schema = answer_schema(operation, full=full)
    check_schema(schema)
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf"} & schema.keys()
    assert references(schema) <= {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    assert set(schema["required"]) <= schema["properties"].keys()
    assert all(NAME.fullmatch(name) for name in schema.get("$defs", {}))


def fits(answer, operation):
    for full in (True, False):
        validate(answer, answer_schema(operation, full=full))


@pytest.mark.parametrize("operation", a_share(SOURCED, 3), ids=lambda operation: operation.name)
async def test_what_the_service_answers_fits_both_schemas(operation):
    fits(await composed(operation), operation)


FREE = [operation for operation in SOURCED if operation.tier is Tier.FREE]


@pytest.mark.parametrize("operation", a_share(FREE, 3, first=1), ids=lambda operation: operation.name)
async def test_what_a_free_tool_answers_with_all_sources_down_fits_too(operation):
    fits(await composed(operation, down=("*",)), operation)


def test_free_answers_hold_their_payload_in_data_which_may_be_null():
    schema = answer_schema(TINY["sights"])
    assert list(schema["properties"]) == ["source", "endpoint", "updated_at", "data", "stale", "warning", "_meta"]
    assert schema["properties"]["data"]["type"] == ["object", "null"]
    assert schema["required"] == ["source", "endpoint", "updated_at", "data", "stale", "_meta"]


def test_a_free_top_level_payload_may_be_null_in_every_member():
    members = answer_schema(TINY["digest"])["properties"]
    assert members["summary"] == {"type": ["string", "null"]}
    assert members["mood"] == {"type": ["string", "null"], "enum": ["calm", "busy", None]}


def test_a_premium_answer_has_its_payload_between_its_own_members():
    schema = answer_schema(TINY["premium_deep"])
    assert list(schema["properties"]) == [
        *("source", "endpoint", "generated_at", "windows", "notes", "warning", "captured_at", "stale", "_meta")
    ]
    assert "warning" not in schema["required"]
    assert {"notes", "captured_at"} <= set(schema["required"])


def test_a_payment_answer_is_its_payload():
    schema = answer_schema(TINY["payment_buy_credits"], full=True)
    assert list(schema["properties"]) == ["wallet", "credits", "_meta"]
    assert schema["required"] == ["wallet", "credits"]


def test_the_full_level_tells_sources_and_warnings_apart_the_compact_one_does_not():
    full, compact = answer_schema(TINY["sights"], full=True), answer_schema(TINY["sights"])
    assert {"Meta", "SourceUse", "Warning"} <= full["$defs"].keys()
    assert compact["properties"]["_meta"]["type"] == "object"
    assert "Meta" not in compact["$defs"]


def test_a_payload_model_must_not_take_the_name_of_a_shared_definition():
    class Warning(Payload):
        value: int

    class Twice(Payload):
        one: Warning
        other: Warning

    async def twins(ctx: ToolContext) -> Twice:
        """Two values of the same kind, side by side."""
        raise AssertionError

    twins.__annotations__["return"] = Twice
    operation = operation_of(tool(path="/api/twins", title="Twins")(twins))
    with pytest.raises(ValueError, match="Warning"):
        answer_schema(operation, full=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"type": "string", "enum": ["a"]},
        {"$ref": "#/$defs/X", "description": "an x"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]},
    ],
)
def test_a_nullable_schema_accepts_null_and_what_it_accepted_before(schema):
    again = nullable(schema)
    rooted = {"$defs": {"X": {"type": "string"}}, **again}
    validate(None, rooted)
    value = 1 if schema.get("type") == ["integer", "null"] else "a"
    validate(value, rooted)
    assert nullable(again) == again


def test_fields_are_listed_depth_first_with_lists_and_maps_marked():
    assert [row.path for row in rows(TINY["sights"].data_schema)] == [
        *("seen", "seen[].name", "seen[].height_m", "best", "best.name", "best.height_m", "at")
    ]
    assert [row.path for row in rows(TINY["premium_deep"].data_schema)][1:4] == [
        *("windows", "windows.*.name", "windows.*.height_m")
    ]


def test_a_field_says_its_kind_its_bounds_and_its_default():
    by_name = {row.path: row for row in rows(TINY["sights"].input_schema)}
    assert by_name["lat"].kind == "number, from -90 to 90"
    assert by_name["kind"].kind == "one of tower, bridge"
    assert by_name["kind"].default == "tower"
    assert by_name["period"].kind == '"24h"'
    assert by_name["names"].kind == "list of one of a, b"
    assert {row.path: row.kind for row in rows(TINY["sights"].data_schema)}["best"] == "object or null"


def test_a_model_that_contains_itself_ends_somewhere():
    class Node(Payload):
        sight: Sight
        below: list["Node"]

    definitions = Node.model_json_schema(mode="serialization")["$defs"]
    assert 0 < len(rows({**definitions["Node"], "$defs": definitions})) < 100
