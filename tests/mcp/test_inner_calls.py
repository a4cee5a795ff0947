"""A tool that runs others: hosts that were shown few tools call the other free ones by it."""

import json

import pytest

from tests.json_schemas import validate
from tests.mcp.service import TOKEN, asked, finder, running
from tests.requirements import proves

HEADERS = {"content-type": "application/json"}


async def ask(http, tool, arguments, *, query="", **headers):
    message = asked("tools/call", {"name": tool, "arguments": arguments})
    result = (await http.post(f"/api/mcp{query}", json=message, headers=HEADERS | headers)).json()["result"]
    return result["isError"], result["content"][0]["text"], result.get("structuredContent")


async def listed(http, query=""):
    answer = await http.post(f"/api/mcp{query}", json=asked("tools/list"), headers=HEADERS)
    return {each["name"]: each for each in answer.json()["result"]["tools"]}


@proves("find-tools.call")
async def test_it_returns_the_bytes_that_the_tool_itself_returns():
    async with running(more=(finder,)) as service, service.client() as http:
        _, own, _ = await ask(http, "echo", {"text": "hé", "times": 2})
        failed, text, structured = await ask(
            http, "finder", {"call": {"name": "echo", "arguments": {"text": "hé", "times": 2}}}
        )
        definition = (await listed(http))["finder"]
    assert not failed
    assert text == f'{{"called":"echo","result":{own}}}'
    assert structured == json.loads(text)
    validate(structured, definition["outputSchema"])


async def test_it_runs_a_tool_that_is_not_listed_by_its_alias_and_without_arguments():
    async with running(more=(finder,)) as service, service.client() as http:
        names = await listed(http)
        _, _, hidden = await ask(http, "finder", {"call": {"name": "coin"}})
        _, _, aliased = await ask(http, "finder", {"call": {"name": "parrot", "arguments": {"text": "a"}}})
    assert "coin" not in names
    assert (hidden["called"], hidden["result"]["data"]["word"]) == ("coin", "heads")
    assert (aliased["called"], aliased["result"]["data"]["text"]) == ("echo", "a")


@proves("find-tools.call")
async def test_it_counts_and_is_spaced_as_the_tool_that_it_runs():
    async with running(limited=True, more=(finder,)) as service, service.client() as http:
        await ask(http, "echo", {"text": "a"})
        failed, text, _ = await ask(http, "finder", {"call": {"name": "echo", "arguments": {"text": "a"}}})
        searched = [await ask(http, "finder", {"q": "coin"}) for _ in range(3)]
    assert (failed, json.loads(text)["error"]) == (True, "rate_limited")
    assert [failure for failure, _, _ in searched] == [False] * 3


@proves("find-tools.priced")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"name": "oracle"}, "oracle costs 2 credits: call it by its own name"),
        ({"name": "finder"}, "does not run itself"),
        ({"name": "eco"}, "did you mean echo"),
        ({"name": "nothing of the kind"}, "search for it with `q`"),
        ({"arguments": {}}, 'must be {"name"'),
        ({"name": "echo", "arguments": "text"}, 'must be {"name"'),
        ({"name": "echo", "text": "a"}, 'must be {"name"'),
        ("echo", 'must be {"name"'),
        ({"name": "echo", "arguments": {"text": "a", "tims": 2}}, "did you mean 'times'"),
    ],
)
async def test_what_it_does_not_run_is_refused_in_words(call, said):
    async with running(more=(finder,)) as service, service.client() as http:
        failed, text, structured = await ask(http, "finder", {"call": call, "token": TOKEN})
        left = await service.ledger.balance(TOKEN)
    assert (failed, structured, left) == (True, None, 100)
    assert (json.loads(text)["error"], said in json.loads(text)["detail"]) == ("invalid_arguments", True)


@pytest.mark.parametrize(("query", "failed"), [("?toolset=core", False), ("?tools=finder", True), ("", False)])
async def test_it_reaches_every_free_tool_unless_the_client_named_its_tools(query, failed):
    async with running(more=(finder,)) as service, service.client() as http:
        refused, _, _ = await ask(http, "finder", {"call": {"name": "coin"}}, query=query)
    assert refused is failed


async def test_only_it_lists_the_argument():
    async with running(more=(finder,)) as service, service.client() as http:
        takes = {name for name, each in (await listed(http)).items() if "call" in each["inputSchema"]["properties"]}
        _, text, _ = await ask(http, "echo", {"text": "a", "call": {"name": "coin"}})
    assert takes == {"finder"}
    assert json.loads(text)["error"] == "invalid_arguments"


async def test_a_call_that_is_null_is_none():
    async with running(more=(finder,)) as service, service.client() as http:
        failed, _, structured = await ask(http, "finder", {"q": "heads or tails", "call": None})
    assert (failed, structured["data"]["word"]) == (False, "coin")
