"""What the definitions say of arguments: in every tool values at a bound are taken, and those just beyond are not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.requirements import proves
from tests.tools.premium.store import FUNDS, TOKEN, Store, store
from toolserver.mcp.definitions import LONGEST_ENUM
from toolserver.settings import LimitSettings

Schema = dict[str, Any]

TOGETHER: dict[str, Schema] = {"weather": {"lat": 1, "lon": 1}, "air_quality": {"lat": 1, "lon": 1}}
"""Arguments that a tool takes only together."""

FORGIVING = {"air_quality"}
"""Takes its default place for any coordinate that is none, as the specification wants."""

ON_MCP_ALONE = {"token", "call"}  # where no header carries a token; and of find_tools
SAID = ("enum", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
LENGTHS = ("minLength", "maxLength")
LAYOUTS = ("raw", "openai", "openai-responses", "anthropic", "bedrock", "gemini")
MEMBERS = ("parameters", "input_schema", "parametersJsonSchema", "inputSchema")
STEP = {"integer": 1, "number": 0.001}


def inside(schema: Schema) -> Iterator[Any]:
    """The default, every value of an enum, and the values at the bounds of a schema."""
    if "default" in schema:
        yield schema["default"]
    yield from schema.get("enum", ())
    for bound in ("minimum", "maximum"):
        if bound in schema:
            yield schema[bound]
    for member in inside(schema["items"]) if isinstance(schema.get("items"), dict) else ():
        yield [member]


def beyond(schema: Schema) -> Iterator[Any]:
    """Values of the right type just outside of each enum and bound."""
    step = STEP.get(schema.get("type", ""), 1)
    if "enum" in schema:
        yield "none-of-these"
    if "minimum" in schema:
        yield schema["minimum"] - step
    if "maximum" in schema:
        yield schema["maximum"] + step
    if "maxLength" in schema and "enum" not in schema:
        yield "a" * (schema["maxLength"] + 1)
    if "maxItems" in schema:
        (item, *_) = [*inside(schema["items"]), "a"]
        yield [item] * (schema["maxItems"] + 1)
    for member in beyond(schema["items"]) if isinstance(schema.get("items"), dict) else ():
        yield [member]


async def ask(shop: Store, name: str, arguments: Schema) -> Schema:
    """What a caller is told over MCP: the payload, or the refusal."""
    result = await shop.tell(name, arguments)
    told: Schema = json.loads(result["content"][0]["text"])
    return told


def refused(told: Schema, argument: str) -> bool:
    """Whether the call was refused for this argument."""
    if told.get("error") != "invalid_arguments":
        return False
    return any(str(error["loc"]).split(".")[0] == argument for error in told["errors"])


def properties(schema: Schema) -> dict[str, Schema]:
    found: dict[str, Schema] = schema.get("properties", {})
    return found


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path, limits=LimitSettings(enabled=False)) as s:
        yield s


@proves("definitions.true")
async def test_what_is_required_or_just_beyond_a_bound_is_refused_by_name_and_costs_nothing(shop):
    wrong, tried = [], 0
    for operation in shop.tools:
        if operation.name in FORGIVING:
            continue
        example, required = await shop.example(operation.name), operation.input_schema.get("required", [])
        assert example.keys() >= set(required), operation.name
        cases = [(name, {k: v for k, v in example.items() if k != name}) for name in required]
        for name, schema in properties(operation.input_schema).items():
            cases += [(name, TOGETHER.get(operation.name, {}) | example | {name: value}) for value in beyond(schema)]
        for name, arguments in cases:
            tried += 1
            if not refused(await ask(shop, operation.name, arguments), name):
                wrong.append((operation.name, name, str(arguments.get(name, "absent"))[:40]))

    assert wrong == []
    assert tried > 100
    assert shop.upstreams.bodies == []
    assert await shop.balance() == FUNDS


@proves("definitions.true")
@pytest.mark.slow("it composes most tools with each value of their arguments")
async def test_each_default_bound_and_value_of_a_list_is_taken(shop):
    wrong, tried = [], 0
    await shop.service.money.ledger.mint(TOKEN, 10_000, cause="more")
    for operation in shop.tools:
        example = await shop.example(operation.name)
        for name, schema in properties(operation.input_schema).items():
            for value in inside(schema):
                tried += 1
                arguments = TOGETHER.get(operation.name, {}) | example | {name: value}
                if refused(await ask(shop, operation.name, arguments), name):
                    wrong.append((operation.name, name, value))

    assert wrong == []
    assert tried > 200


@proves("definitions.true")
async def test_a_default_given_by_hand_is_the_call_without_it(shop):
    compared = 0
    for operation in shop.tools:
        if operation.method != "GET" or operation.personal or "{" in operation.path:
            continue
        defaults = {n: s["default"] for n, s in properties(operation.input_schema).items() if "default" in s}
        if not defaults or operation.input_schema.get("required") or operation.name in FORGIVING:
            continue
        plain, given = await ask(shop, operation.name, {}), await ask(shop, operation.name, defaults)
        for told in (plain, given):
            told["_meta"] = {k: v for k, v in told.get("_meta", {}).items() if not k.startswith("credits")}
            told["_meta"].pop("receipt_id", None)
        assert plain == given, operation.name
        compared += 1
    assert compared > 10


@proves("arguments.default-place")
async def test_the_default_place_given_by_hand_is_another_question_with_another_answer(shop):
    plain = await shop.client.get("/api/air-quality")
    given = await shop.client.get("/api/air-quality?lat=34.05&lon=-118.24")
    default, chosen = plain.json(), given.json()

    assert "default_location" in {warning["code"] for warning in default["warning"]}
    assert "default_location" not in {warning["code"] for warning in chosen.get("warning", [])}
    assert (default["data"].pop("default_location"), chosen["data"].pop("default_location")) == (True, False)
    assert default["data"].pop("place").startswith("Los Angeles")
    assert chosen["data"].pop("place") is None
    assert default["data"] == chosen["data"]
    assert plain.headers["etag"] != given.headers["etag"]


@proves("definitions.true", "definitions.layouts")
async def test_every_layout_says_the_same_of_every_argument(shop):
    said = {layout: await definitions(shop, layout) for layout in LAYOUTS}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    on_mcp = (await shop.client.post("/api/mcp?toolset=all", json=message)).json()["result"]["tools"]
    said["mcp"] = {tool["name"]: tool["inputSchema"] for tool in on_mcp}
    for layout, found in said.items():
        for name, schema in found.items():
            own = shop.service.registry[name].input_schema
            told, true = properties(schema), properties(own)
            assert told.keys() - ON_MCP_ALONE == true.keys(), (layout, name)
            assert set(schema.get("required", ())) == set(own.get("required", ())), (layout, name)
            for argument in true:
                facts = {key: true[argument][key] for key in SAID if key in true[argument]}
                if layout == "mcp":  # leaves out what a model need not read before it asks
                    facts = {key: fact for key, fact in facts.items() if key not in LENGTHS and not is_long(fact)}
                assert {k: told[argument].get(k) for k in facts} == facts, (layout, name, argument)


def is_long(fact: object) -> bool:
    """Whether it is an `enum` of so many words that a list of tools leaves it out; an error names the nearest."""
    return isinstance(fact, list) and len(fact) > LONGEST_ENUM


async def definitions(shop: Store, layout: str) -> dict[str, Schema]:
    """The schema of each tool's arguments in one layout of the catalogue, by name."""
    body = (await shop.client.get(f"/api/llm-tools?format={layout}")).json()
    tools = [
        entry.get("function") or entry.get("toolSpec") or entry
        for entry in next(each for each in body.values() if isinstance(each, list))
    ]
    schemas = [next((tool[key] for key in MEMBERS if key in tool), {}) for tool in tools]
    return {tool["name"]: schema.get("json", schema) for tool, schema in zip(tools, schemas, strict=True)}
