"""An agent without any knowledge of the service: it does only what answers and refusals say, and gets a paid answer."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.live.processes import Program, control
from tests.live.test_bridge import hosted, told

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

MOST_STEPS = 8


class FollowingAgent:
    """Calls what it was told to call next, with arguments found in earlier answers. A person pays: `wallet`."""

    def __init__(self, session: ClientSession, world_url: str) -> None:
        self._session, self._world_url = session, world_url
        self._schemas: dict[str, dict[str, Any]] = {}
        self._known: dict[str, Any] = {}
        self._how = ""
        self.steps: list[str] = []

    async def reach(self, goal: str) -> dict[str, Any]:
        """The answer of a tool, whatever has to be done before."""
        self._schemas = {tool.name: tool.input_schema for tool in (await self._session.list_tools()).tools}
        name = goal
        while len(self.steps) < MOST_STEPS:
            self.steps.append(name)
            result = await self._session.call_tool(name, self._arguments(name))
            answer: dict[str, Any] = told(result)
            if name == goal and not result.is_error:
                return answer
            self._known |= answer
            name = self._find_next(answer)
        raise AssertionError(f"no way to {goal}: {self.steps}")

    def _find_next(self, answer: dict[str, Any]) -> str:
        if "next" in answer:
            self._how = answer["next"]["how"]
            return str(answer["next"]["tool"])
        mentioned = re.findall(r"call (\w+)", json.dumps(answer))
        assert mentioned, f"a dead end: {answer}"
        return str(mentioned[0])

    def _arguments(self, name: str) -> dict[str, Any]:
        schema = self._schemas[name]
        fields, required = schema.get("properties", {}), schema.get("required", ())
        told_token = "argument `token`" in self._how and "token" in self._known
        wanted = [*required, *(["token"] if told_token and "token" in fields else [])]
        return {field: self._find_value(field, fields[field]) for field in wanted}

    def _find_value(self, field: str, schema: dict[str, Any]) -> Any:
        if field == "tx_hash":
            self._known["tx_hash"] = self._known.get("tx_hash") or self._pay()
        origin = re.search(r"[Tt]he (\w+) from \w+", schema.get("description", ""))
        name = origin[1] if origin else field
        return self._known[name] if name in self._known else schema["minimum"]

    def _pay(self) -> str:
        """What a person's wallet does with the quote. The world's clock then runs fast, so that blocks follow."""
        with control(self._world_url) as world:
            world.put("clock", {"speed": 30})
            return str(world.paid(self._known["wallet"], self._known["amount_atomic"] / 1_000_000))


@asynccontextmanager
async def connected(demo: Program) -> AsyncIterator[ClientSession]:
    """A host that can send no header of its own."""
    async with (
        httpx.AsyncClient(timeout=60, trust_env=False) as http,
        streamable_http_client(demo.ready["mcp_url"], http_client=http) as (reading, writing, *_),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


@pytest.mark.parametrize("way", ["http without headers", "stdio bridge"])
async def test_who_only_does_what_is_said_gets_to_a_paid_answer(demo: Program, tmp_path: Path, way: str) -> None:
    async with connected(demo) if way.startswith("http") else hosted(demo, tmp_path) as session:
        agent = FollowingAgent(session, demo.ready["world_url"])
        try:
            answer = await agent.reach("premium_briefing")
        finally:
            with control(demo.ready["world_url"]) as world:
                world.put("clock", {"speed": 1})
    assert answer["sections"]
    assert answer["_meta"]["credits_remaining"] == 49
    assert agent.steps == ["premium_briefing", "payment_buy_credits", "payment_confirm", "premium_briefing"]
