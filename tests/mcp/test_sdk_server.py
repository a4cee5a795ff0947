"""The registry as a server of the SDK: the listing, calls, and what a message's `_meta` adds to its caller."""

import json
from types import SimpleNamespace

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, PaginatedRequestParams

from tests.mcp.service import TOKEN, registry, running
from toolserver.mcp.asgi import CALLER, CHOICE
from toolserver.mcp.definitions import ToolChoices
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.sdk_server import RegistryTools
from toolserver.x402.headers import META_PAYMENT


def context(meta=None, **scope):
    return SimpleNamespace(request=SimpleNamespace(scope=scope), meta=meta)


@pytest.fixture
async def service():
    async with running() as made:
        yield made


@pytest.fixture
def tools(service):
    choice = ToolChoices(registry()).choose(toolset="all")
    return RegistryTools(FastPath(service.pipeline, service.facts), choice, service.caller(token=TOKEN))


async def test_the_listing_is_one_page(tools):
    listed = await tools.list_tools(context(), None)
    assert [each.name for each in listed.tools] == [each["name"] for each in tools.choice(context()).definitions]
    with pytest.raises(MCPError, match="one page"):
        await tools.list_tools(context(), PaginatedRequestParams(cursor="2"))


async def test_a_call_gives_structure_text_and_meta(tools):
    result = await tools.call_tool(context(), CallToolRequestParams(name="oracle", arguments={"question": "when"}))

    assert result.is_error is False
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.meta["credits_remaining"] == 98


async def test_a_rejected_call_is_a_result_and_no_protocol_error(tools):
    result = await tools.call_tool(context(), CallToolRequestParams(name="echo", arguments={}))

    assert result.is_error is True
    assert json.loads(result.content[0].text)["error"] == "invalid_arguments"


async def test_an_unknown_tool_names_those_that_are_near(tools):
    with pytest.raises(MCPError) as refused:
        await tools.call_tool(context(), CallToolRequestParams(name="wrod"))
    assert refused.value.error.data == {"did_you_mean": ["word"]}


async def test_meta_adds_to_the_caller(tools):
    caller = tools.caller(
        context({"idempotency_key": "k", "agent_nonce": "n", "receipt": "reference", META_PAYMENT: {"a": 1}})
    )
    assert caller.receipt_reference

    assert (caller.token, caller.idempotency_key, caller.nonce, caller.payment) == (TOKEN, "k", "n", '{"a":1}')
    assert caller.request_id.startswith("req_")
    assert tools.caller(context()).payment is None


@pytest.mark.parametrize("meta", [{"idempotency_key": 5}, {"agent_nonce": ["n"]}])
async def test_meta_of_another_type_is_refused(tools, meta):
    with pytest.raises(MCPError, match="are strings"):
        tools.caller(context(meta))


async def test_over_http_caller_and_choice_come_with_the_request(service):
    tools = RegistryTools(FastPath(service.pipeline, service.facts))
    choice, caller = ToolChoices(registry()).choose(), service.caller()
    given = context(None, **{CHOICE: choice, CALLER: caller})

    assert tools.choice(given) is choice
    assert tools.caller(given).client == caller.client
