"""The tool that finds tools, over a service of all."""

import json

from tests.calls.parts import engine
from tests.requirements import proves
from toolserver.registry.registry import Registry

REGISTRY = Registry.load("tools")


async def find(e, **arguments):
    return json.loads((await e.call("find_tools", arguments)).rendered.payload)


@proves("find-tools.definitions")
async def test_it_returns_whole_definitions_best_first():
    async with engine(REGISTRY) as e:
        answer = await find(e, q="is the air bad in Delhi", limit=2)
    first, second = answer["data"]["tools"]
    operation = REGISTRY["air_quality"]
    assert (answer["endpoint"], answer["data"]["query"]) == ("find-tools", "is the air bad in Delhi")
    assert (first["name"], first["input_schema"]) == ("air_quality", operation.input_schema)
    assert (first["description"], first["cost_credits"]) == (operation.description, 0)
    assert (first["rest"], first["arguments_in"]["place"]) == ("GET /api/air-quality", "query")
    assert second["name"] != first["name"]


@proves("find-tools.definitions")
async def test_a_client_may_search_as_often_as_it_likes():
    async with engine(REGISTRY, limits=True) as e:
        answers = [await e.call("find_tools", {"q": word}, limited=True) for word in ("gas", "gas", "fire")]
    assert all(answer.rendered.payload for answer in answers)


async def test_it_lists_only_what_this_service_lists():
    async with engine(REGISTRY) as e:
        named = [tool["name"] for tool in (await find(e, q="buy credits x402 wallet", limit=20))["data"]["tools"]]
        listed = {operation.name for operation in e.registry.listed}
    assert set(named) <= listed


async def test_without_a_query_it_lists_the_first_tools():
    async with engine(REGISTRY) as e:
        answer = await find(e)
    assert [tool["name"] for tool in answer["data"]["tools"]] == [o.name for o in e.registry.listed[:5]]
    assert answer["data"]["query"] is None
