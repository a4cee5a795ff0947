"""Every tool of the product, in every version of the protocol and with every kind of id: fast bytes are the SDK's."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from tests.mcp.service import asked, headers_for
from tests.mcp.test_fast_path import IDS, VERSIONS
from tests.tools.premium.store import BEARER, store
from toolserver.mcp import messages
from toolserver.registry.registry import Operation
from toolserver.settings import LimitSettings

pytestmark = pytest.mark.slow("it calls every tool in every version")

PARTS = 4


class Doors:
    """One service behind two endpoints: one that may not ask the SDK, and one that asks it for everything."""

    def __init__(self, fast: httpx.AsyncClient, sdk: httpx.AsyncClient) -> None:
        self._fast, self._sdk = fast, sdk

    async def ask(self, message: dict[str, Any], version: str | None) -> tuple[Any, Any]:
        """Status and message of both answers."""
        headers = headers_for(message, version) | BEARER | {"x-request-id": "req_00000001"}
        body = json.dumps(message)
        answers = [await door.post("/api/mcp", content=body, headers=headers) for door in (self._fast, self._sdk)]
        fast, sdk = ((answer.status_code, json.loads(answer.content)) for answer in answers)
        return fast, sdk


async def forbid(*_: Any, **__: Any) -> None:
    raise AssertionError("this message was to be answered without the SDK")


@asynccontextmanager
async def doors(tmp_path: Any) -> AsyncIterator[tuple[Doors, list[Operation]]]:
    """Both doors of a store that sells everything, and its tools."""
    async with store(tmp_path, limits=LimitSettings(enabled=False), sources={"licence_policy": "any"}) as shop:
        ours, theirs = shop.service.mcp_endpoint(), shop.service.mcp_endpoint()
        ours.sdk = forbid  # type: ignore[assignment]
        theirs.answer_at_once = AsyncMock(return_value=None)  # type: ignore[method-assign]
        theirs.answer_later = theirs.answer_by_sdk  # type: ignore[method-assign]
        clients = [
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://data.example")
            for app in (ours, theirs)
        ]
        async with clients[0] as fast, clients[1] as sdk:
            yield Doors(fast, sdk), list(shop.service.registry)


def is_pure(operation: Operation) -> bool:
    """Whether two calls, one after the other at the same moment, have the same answer."""
    return operation.reads_only and not operation.personal


@pytest.mark.parametrize("part", range(PARTS))
async def test_the_answer_of_every_tool_is_the_same_by_both_ways(tmp_path: Any, part: int) -> None:
    seen = 0
    async with doors(tmp_path) as (both, tools):
        for operation in tools[part::PARTS]:
            if not is_pure(operation):
                continue
            for version in VERSIONS:
                modern = version == messages.MODERN
                for value in IDS:
                    params: dict[str, Any] = {"name": operation.name, "arguments": {}}
                    if operation.credits:  # with a key the receipt of the second answer is that of the first
                        params["_meta"] = {"idempotency_key": f"{operation.name} {version}"}
                    fast, sdk = await both.ask(asked("tools/call", params, value=value, modern=modern), version)
                    assert fast == sdk, (operation.name, version, value)
                    assert fast[1]["id"] == value
                    assert type(fast[1]["id"]) is type(value)
                    seen += "result" in fast[1]
    assert seen > 7 * len(VERSIONS) * len(IDS)


async def test_tools_that_act_or_are_personal_say_the_same_but_for_what_is_of_one_call(tmp_path: Any) -> None:
    async with doors(tmp_path) as (both, tools):
        for operation in tools:
            if is_pure(operation):
                continue
            for version in ("2025-11-25", messages.MODERN):
                message = asked("tools/call", {"name": operation.name}, modern=version == messages.MODERN)
                fast, sdk = await both.ask(message, version)
                assert fast[0] == sdk[0]
                assert fast[1].keys() == sdk[1].keys()
                assert fast[1]["result"]["isError"] is sdk[1]["result"]["isError"], operation.name
                assert fast[1]["result"].keys() == sdk[1]["result"].keys(), operation.name
