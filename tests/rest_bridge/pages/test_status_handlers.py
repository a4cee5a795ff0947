"""The handlers of the status: four documents of one reading each, the same for some seconds."""

import json

import anyio
import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.pages.status import KEEP_S, status_handlers
from tests.calls.parts import START
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.statuses import status_of
from toolserver.clock import ManualClock

TYPES = {
    "/status": "text/html; charset=utf-8",
    "/status.json": "application/json",
    "/status.atom": "application/atom+xml; charset=utf-8",
    "/sources": "text/html; charset=utf-8",
}


class Reading:
    def __init__(self):
        self.clock, self.asked = ManualClock(START), 0
        self.pages = status_handlers(TINY, FACTS, self.read, self.clock)

    async def read(self):
        self.asked += 1
        return status_of(TINY, asked=self.asked)

    async def get(self, path):
        scope = {"headers": [], "query_string": b"", "path": path}
        return await self.pages[path](scope, parse_request(scope))


@pytest.mark.parametrize("path", TYPES)
async def test_each_form_has_its_type_and_may_be_kept_for_seconds(path):
    reply = await Reading().get(path)
    headers = {name.decode(): value.decode() for name, value in reply.headers}
    assert (reply.status, headers["content-type"]) == (200, TYPES[path])
    assert headers["cache-control"] == f"public, max-age={KEEP_S}"
    assert ("content-security-policy" in headers) == TYPES[path].startswith("text/html")


async def test_many_readers_within_some_seconds_cost_one_reading():
    reading = Reading()
    first = [json.loads((await reading.get("/status.json")).body)["asked"] for _ in range(20)]
    reading.clock.advance(KEEP_S)
    assert [*first, json.loads((await reading.get("/status.json")).body)["asked"]] == [1] * 20 + [2]


async def test_a_reading_is_kept_for_five_seconds_and_no_longer():
    assert KEEP_S == 5
    reading = Reading()
    for seconds in (0, 4.9, 0.1, 4.9, 0.1):
        reading.clock.advance(seconds)
        await reading.get("/status.json")
    assert reading.asked == 3


async def test_those_who_ask_at_once_wait_for_one_reading():
    reading = Reading()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(reading.get, "/status.json")
    assert reading.asked == 1
