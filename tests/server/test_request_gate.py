"""The gate: it waits for what is in progress, refuses the rest, and says when the app has died."""

import asyncio
import json

import pytest

from toolserver.calls.delivery import when_sent
from toolserver.registry.site_facts import SiteFacts
from toolserver.server.request_gate import RequestGate

FACTS = SiteFacts(base_url="https://data.example", source="data.example")


async def asked(gate: RequestGate, method: str = "GET", path: str = "/") -> list[dict]:
    sent: list[dict] = []

    async def send(event):
        sent.append(event)

    await gate({"type": "http", "method": method, "path": path}, None, send)
    return sent


async def test_a_stop_waits_for_what_is_in_progress_and_refuses_the_rest():
    entered, leave = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        entered.set()
        await leave.wait()

    gate = RequestGate(app, FACTS)
    running = asyncio.ensure_future(asked(gate))
    await entered.wait()
    stopping = asyncio.ensure_future(gate.stop(60))
    await asyncio.sleep(0)
    start, body = await asked(gate)
    assert start["status"] == 503
    assert dict(start["headers"])[b"retry-after"] == b"5"
    assert dict(start["headers"])[b"connection"] == b"close"
    problem = json.loads(body["body"])
    assert problem["error"] == "shutting_down"
    assert problem["type"] == "https://data.example/problems/shutting_down"
    assert problem["request_id"] == dict(start["headers"])[b"x-request-id"].decode()
    assert not stopping.done()
    leave.set()
    await running
    await stopping


async def test_a_refused_head_has_no_body():
    gate = RequestGate(None, FACTS)  # type: ignore[arg-type]
    await gate.stop(0)

    assert (await asked(gate, "HEAD"))[1]["body"] == b""


async def test_readiness_is_asked_of_the_app_until_the_end():
    async def app(scope, receive, send):
        await send({"asked": scope["path"]})

    gate = RequestGate(app, FACTS)
    await gate.stop(0)

    assert await asked(gate, path="/readyz") == [{"asked": "/readyz"}]


async def test_a_stop_gives_up_waiting_in_time():
    entered = asyncio.Event()

    async def app(scope, receive, send):
        entered.set()
        await asyncio.Event().wait()

    gate = RequestGate(app, FACTS)
    running = asyncio.ensure_future(asked(gate))
    await entered.wait()
    await gate.stop(0.01)
    running.cancel()


@pytest.mark.parametrize(("asked_first", "died"), [(True, False), (False, True)])
async def test_an_app_that_ends_unasked_has_died(asked_first, died):
    async def app(scope, receive, send):
        if asked_first:
            await receive()

    async def receive():
        return {"type": "lifespan.shutdown"}

    gate = RequestGate(app, FACTS)
    await gate({"type": "lifespan"}, receive, None)

    assert gate.died.is_set() is died


async def test_what_waits_for_an_answer_to_be_sent_is_done_after_it():
    done: list[str] = []

    async def app(scope, receive, send):
        when_sent(lambda: done.append("delivered"))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        done.append("sent")

    await asked(RequestGate(app, FACTS))

    assert done == ["sent", "delivered"]


async def test_answers_from_then_on_are_the_last_on_their_connections():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": ((b"x", b"y"),)})
        await send({"type": "http.response.body", "body": b"yes"})

    gate = RequestGate(app, FACTS)
    assert not gate.is_replaced()
    gate.end_connections()
    start, body = await asked(gate)
    assert start["headers"] == [(b"x", b"y"), (b"connection", b"close")]
    assert body["body"] == b"yes"
