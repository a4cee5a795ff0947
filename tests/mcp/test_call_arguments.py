"""Arguments that are not the tool's own: a token, where it is taken and never seen again; and what hosts add."""

import json
from dataclasses import replace

import pytest

from tests.mcp.service import POOR, TOKEN, asked, running
from tests.requirements import proves
from toolserver.core.caller import Caller
from toolserver.errors import InvalidArguments
from toolserver.mcp.call_arguments import (
    ADDED_BY,
    LOST,
    NEXT,
    drop_host_arguments,
    next_step,
    take_token,
    write_arguments,
)
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry

TOOLS = Registry.load("tools")
NOBODY = Caller(client="192.0.2.1")
HEADERS = {"content-type": "application/json"}


@proves("tokens.argument")
def test_only_tools_that_need_a_token_list_one_and_none_requires_it():
    listed = {o.name for o in TOOLS if "token" in write_arguments(o, token_argument=True)["properties"]}
    assert {"premium_briefing", "payment_balance", "account_statement"} <= listed
    assert not {"btc_price", "payment_buy_credits", "payment_confirm"} & listed
    assert all("token" not in write_arguments(o, token_argument=True).get("required", []) for o in TOOLS)
    assert all("token" not in o.input_schema.get("properties", {}) for o in TOOLS)


@pytest.mark.parametrize("written", [TOKEN, f" {TOKEN}\n", f"Bearer {TOKEN}", f"bearer  {TOKEN}"])
@pytest.mark.parametrize("name", ["premium_briefing", "btc_price"])
def test_a_token_becomes_the_callers_and_leaves_the_arguments(name, written):
    given = {"token": written, "other": 1}
    rest, caller = take_token(TOOLS[name], given, NOBODY)
    assert (rest, caller.token, caller.client) == ({"other": 1}, TOKEN, NOBODY.client)
    assert given == {"token": written, "other": 1}


def test_without_one_nothing_changes():
    given = {"other": 1}
    rest, caller = take_token(TOOLS["btc_price"], given, NOBODY)
    assert rest is given
    assert caller is NOBODY


@proves("tokens.argument-alone")
@pytest.mark.parametrize("value", [TOKEN, {"secret": TOKEN}, [TOKEN], 7, False])
def test_beside_a_header_or_as_anything_but_text_it_is_refused_without_its_value(value):
    caller = Caller(client="x", token=POOR) if value == TOKEN else NOBODY
    with pytest.raises(InvalidArguments) as refused:
        take_token(TOOLS["premium_briefing"], {"token": value}, caller)
    assert "svc_live_" not in refused.value.detail + json.dumps(refused.value.extra)


def test_each_step_belongs_to_a_code_and_names_a_tool():
    assert set(NEXT) <= PROBLEMS.keys()
    assert all(TOOLS.get(next_step(code)["next"]["tool"]) for code in NEXT)
    assert next_step("rate_limited") == {}


async def ask(http, tool, arguments, **headers):
    message = asked("tools/call", {"name": tool, "arguments": arguments})
    result = (await http.post("/api/mcp", json=message, headers=HEADERS | headers)).json()["result"]
    return json.loads(result["content"][0]["text"]) | {"failed": result["isError"]}


@proves("tokens.argument", "tokens.argument-alone")
async def test_a_connection_without_headers_pays_by_the_argument():
    async with running() as service, service.client() as http:
        unpaid = await ask(http, "oracle", {"question": "why"})
        paid = await ask(http, "oracle", {"question": "why", "token": TOKEN})
        wrong = await ask(http, "oracle", {"token": "svc_live_nonsense"})
        twice = await ask(http, "oracle", {"token": TOKEN}, authorization=f"Bearer {TOKEN}")
    assert (unpaid["error"], unpaid["next"]["tool"]) == ("missing_token", "payment_buy_credits")
    assert (paid["failed"], paid["_meta"]["credits_remaining"]) == (False, 98)
    assert (wrong["error"], twice["error"]) == ("invalid_token", "invalid_arguments")


@proves("tokens.placeholder")
@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Bearer svc_live_YOUR_TOKEN", "Bearer ${env:TOOLSERVER_TOKEN}"]
)
async def test_where_the_header_holds_no_token_the_argument_is_listed_and_pays(header):
    async with running() as service, service.client() as http:
        listed = await http.post("/api/mcp", json=asked("tools/list"), headers=HEADERS | {"authorization": header})
        unpaid = await ask(http, "oracle", {"question": "why"}, authorization=header)
        paid = await ask(http, "oracle", {"question": "why", "token": TOKEN}, authorization=header)
        again = await ask(http, "oracle", {"token": TOKEN}, authorization=header)
    takes = {tool["name"]: "token" in tool["inputSchema"]["properties"] for tool in listed.json()["result"]["tools"]}
    assert (takes["oracle"], unpaid["error"], paid["failed"], again["failed"]) == (True, "missing_token", False, False)
    assert again["_meta"]["credits_remaining"] == 96


@proves("tokens.placeholder")
@pytest.mark.parametrize(
    "argument", [None, "", " ", "svc_live_YOUR_TOKEN", "bearer svc_live_YOUR_TOKEN", "Bearer", "${input:token}"]
)
@pytest.mark.parametrize("caller", [NOBODY, replace(NOBODY, token=TOKEN)], ids=["no header", "header"])
def test_what_stands_for_no_token_counts_as_absent(argument, caller):
    rest, taken = take_token(TOOLS["premium_briefing"], {"token": argument, "other": 1}, caller)
    assert (rest, taken) == ({"other": 1}, caller)


async def test_a_free_tool_takes_it_and_its_spelling_is_not_remembered():
    async with running() as service, service.client() as http:
        first = await ask(http, "echo", {"text": "hé", "token": TOKEN})
        again = await ask(http, "echo", {"text": "hé", "token": TOKEN})
        kept = [key for choice in service.endpoint.admission.verdicts.values() for key in choice.routes["echo"].keys]
    assert first["failed"] is again["failed"] is False
    assert kept == []


@proves("tokens.argument")
async def test_the_list_names_it_only_where_no_header_carries_a_token():
    async with running() as service, service.client() as http:
        message = asked("tools/list")
        bare = (await http.post("/api/mcp", json=message, headers=HEADERS)).json()["result"]["tools"]
        headed = (await http.post("/api/mcp", json=message, headers=HEADERS | {"authorization": "Bearer x"})).json()
    takes = {tool["name"]: "token" in tool["inputSchema"]["properties"] for tool in bare}
    assert (takes["oracle"], takes["word"]) == (True, False)
    assert all("token" not in tool["inputSchema"]["properties"] for tool in headed["result"]["tools"])


STOCKS, CONFIRM = TOOLS["stocks"], TOOLS["payment_confirm"]


BY_HOSTS = (
    *("toolCallId", "sessionId", "action", "chatInput", "tool", "task_progress", "security_context"),
    *("_placeholder", "random_string", "wait_for_previous", "waitForPreviousTools"),
)


@proves("arguments.hosts", "arguments.hosts-unlogged")
async def test_what_hosts_add_changes_no_answer_and_is_neither_stored_nor_logged(caplog):
    caplog.set_level("DEBUG")
    added = {name: f"private-{number}" for number, name in enumerate(BY_HOSTS)}
    async with running() as service, service.client() as http:
        plain = await ask(http, "echo", {"text": "hé"})
        asks = [await ask(http, "echo", {"text": "hé"} | added) for _ in range(2)]
        unknown = await ask(http, "echo", {"text": "hé", "sessionid": "private-x"})
        kept = [key for choice in service.endpoint.admission.verdicts.values() for key in choice.routes["echo"].keys]
        counted = service.pipeline.metrics.text().decode()
    assert asks == [plain] * 2
    assert unknown["error"] == "invalid_arguments"
    assert all(f'"{name}"' in counted for name in BY_HOSTS), "they are counted by name"
    assert "private-" not in caplog.text + repr(kept) + counted + json.dumps(asks)


@proves("arguments.hosts")
@pytest.mark.parametrize("name", ADDED_BY)
def test_a_hosts_own_argument_is_dropped_and_counted_by_name(name):
    counted: list[str] = []

    assert drop_host_arguments(STOCKS, {"symbols": "AAPL", name: "anything"}, counted.append) == {"symbols": "AAPL"}
    assert counted == [name]


@proves("arguments.absent")
@pytest.mark.parametrize("nothing", [None, ""])
def test_null_and_an_empty_text_are_absent_where_an_argument_is_optional(nothing):
    assert drop_host_arguments(STOCKS, {"symbols": nothing}, list[str]().append) == {}
    assert drop_host_arguments(CONFIRM, {"tx_hash": nothing}, list[str]().append) == {"tx_hash": nothing}


def test_other_unknown_arguments_are_left_for_the_refusal():
    assert drop_host_arguments(STOCKS, {"symbol": "AAPL"}, list[str]().append) == {"symbol": "AAPL"}


@proves("arguments.lost")
def test_arguments_that_a_host_lost_are_asked_for_again():
    with pytest.raises(InvalidArguments, match="send them again as a JSON object"):
        drop_host_arguments(STOCKS, {LOST: "{"}, list[str]().append)
