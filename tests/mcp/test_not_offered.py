"""What is refused without the SDK, by HTTP and over standard input. That the words are its: test_fast_path."""

import json
from typing import Any

import pytest

from tests.mcp.service import asked, headers_for, running
from toolserver.core.caller import Caller
from toolserver.mcp import messages
from toolserver.mcp.fast_path import KNOWN, is_not_offered
from toolserver.mcp.stdio_session import open_session


def read(method: str, params: dict[str, Any]) -> messages.Message:
    message = messages.read_message(json.dumps(asked(method, params)).encode())
    assert message is not None
    return message


def test_the_sdk_knows_the_same_methods_in_the_same_eras() -> None:
    from mcp_types.methods import CLIENT_REQUESTS, SPEC_CLIENT_METHODS

    assert KNOWN == SPEC_CLIENT_METHODS
    for method in KNOWN - {"tools/call", "tools/list", "completion/complete"}:
        known = [modern for modern in (False, True) if any((method, v) in CLIENT_REQUESTS for v in versions(modern))]
        for modern in {False, True} - set(known):
            assert is_not_offered(read(method, {}), modern=modern)


def versions(modern: bool) -> tuple[str, ...]:
    return (messages.MODERN,) if modern else messages.LEGACY


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("prompts/list", {}, True),
        ("prompts/list", {"cursor": "c"}, False),
        ("prompts/get", {"name": "p"}, True),
        ("prompts/get", {}, False),
        ("prompts/get", {"name": "p", "arguments": {"a": 1}}, False),
        ("resources/read", {"uri": "u"}, True),
        ("resources/read", {}, False),
        ("completion/complete", {}, False),
        ("tools/list", {}, False),
        ("tools/call", {"name": "p"}, False),
        ("", {}, False),
        ("no/such", {"task": {}}, False),
        ("no/such", {"arguments": {"a": 1}}, False),
        ("prompts/list", {"arguments": 5}, False),
        ("no/such", {}, True),
        ("subscriptions/listen", {"notifications": {}}, True),
    ],
)
@pytest.mark.parametrize("modern", [False, True])
def test_only_what_is_well_formed_is_refused_here(method: str, params: Any, expected: bool, modern: bool) -> None:
    assert is_not_offered(read(method, params), modern=modern) is expected


async def test_prompts_and_resources_are_not_counted_as_uncommon_and_invented_methods_are() -> None:
    async with running(limited=True) as service, service.client() as client:

        async def ask(method: str) -> int:
            message = asked(method)
            answer = await client.post("/api/mcp", json=message, headers=headers_for(message))
            code: int = answer.json()["error"]["code"]
            return code

        assert {await ask("prompts/list") for _ in range(300)} == {messages.METHOD_NOT_FOUND}
        assert [await ask("no/such") for _ in range(300)].count(messages.INVALID_REQUEST) > 30
        assert await ask("prompts/list") == messages.METHOD_NOT_FOUND


async def test_a_secret_in_the_name_of_a_method_does_not_come_back() -> None:
    secret = "svc_live_" + "0f" * 32
    message = asked(secret)
    async with running() as service, service.client() as client:
        answer = await client.post("/api/mcp", json=message, headers=headers_for(message))

    assert answer.json()["error"]["code"] == messages.METHOD_NOT_FOUND
    assert secret not in answer.text


LISTENING = ("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


@pytest.mark.parametrize("modern", [False, True])
async def test_over_standard_input_it_takes_no_sdk_and_says_the_same(modern: bool) -> None:
    async with running() as service:
        caller = Caller(client="local", limited=False, transport="stdio")
        async with open_session(service.registry, service.pipeline, caller, service.facts) as session:
            for method, params in (("prompts/list", {}), ("resources/read", {"uri": "u"}), ("no/such", {}), LISTENING):
                line = json.dumps(asked(method, params, modern=modern)).encode()
                message = messages.read_message(line)
                assert message is not None
                fast = await session.answer(line, message)
                assert session.sdk is None
                found = await session.answer_by_sdk(line, json.loads(line))
                session.sdk = None
                assert fast is not None
                assert found is not None
                assert json.loads(fast) == json.loads(found)
