"""The gate: it waits for what is in progress, refuses the rest, and says when the app has died."""

import asyncio
import json
from contextlib import suppress
from types import SimpleNamespace

import pytest

from toolserver.calls.response import when_sent
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.admission import Connection, ConnectionLimits, Connections
from toolserver.serving.connections import CONNECTION, RequestGate

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


async def test_a_stop_gives_up_waiting_in_time_even_for_an_app_that_cannot_be_cancelled():
    entered, leave = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        entered.set()
        while not leave.is_set():
            with suppress(asyncio.CancelledError):
                await leave.wait()

    gate = RequestGate(app, FACTS, refuse_s=0.01)
    running = asyncio.ensure_future(asked(gate))
    await entered.wait()
    await gate.stop(0.01)
    assert not running.done()
    leave.set()
    await running


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


class OpenRequest:
    """A request over a connection whose other side decides when its body is complete. `sent` is the answer so far."""

    def __init__(self, gate: RequestGate, method: str = "POST") -> None:
        self.sent: list[dict] = []
        self.pieces: asyncio.Queue[dict] = asyncio.Queue()
        scope = {"type": "http", "method": method, "path": "/"}
        self.answer = asyncio.ensure_future(gate(scope, self.pieces.get, self._send))

    async def _send(self, event):
        self.sent.append(event)

    def say(self, body: bytes, *, more: bool) -> None:
        self.pieces.put_nowait({"type": "http.request", "body": body, "more_body": more})


class Reader:
    """An app that reads a body and then works until it may leave. It notes which work was cancelled."""

    def __init__(self) -> None:
        self.working, self.leave = asyncio.Event(), asyncio.Event()
        self.cancelled: list[str] = []

    async def __call__(self, scope, receive, send):
        at = "reading"
        try:
            while (await receive())["more_body"]:
                pass
            at = "working"
            self.working.set()
            await self.leave.wait()
        except asyncio.CancelledError:
            self.cancelled.append(at)
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"yes"})


async def test_at_a_stop_an_open_body_is_refused_at_once_and_a_complete_request_is_answered():
    app = Reader()
    gate = RequestGate(app, FACTS)
    slow, whole = OpenRequest(gate), OpenRequest(gate)
    slow.say(b"{", more=True)
    whole.say(b"{}", more=False)
    await app.working.wait()
    stopping = asyncio.ensure_future(gate.stop(60))
    await slow.answer
    assert not stopping.done()
    start, body = slow.sent
    assert (start["status"], dict(start["headers"])[b"content-type"]) == (503, b"application/problem+json")
    assert json.loads(body["body"])["error"] == "shutting_down"
    assert app.cancelled == ["reading"]
    app.leave.set()
    await stopping
    await whole.answer
    assert [event.get("status") for event in whole.sent] == [200, None]


@pytest.mark.parametrize("method", ["POST", "HEAD"])
async def test_what_the_app_does_not_answer_in_time_is_cancelled_and_refused_in_words(method):
    app = Reader()
    gate = RequestGate(app, FACTS)
    client = OpenRequest(gate, method)
    client.say(b"", more=False)
    await app.working.wait()
    await gate.stop(0)
    assert client.answer.done()
    assert app.cancelled == ["working"]
    assert client.sent[0]["status"] == 503
    assert (b"shutting_down" in client.sent[1]["body"]) is (method == "POST")


async def test_an_answer_that_has_begun_is_never_followed_by_a_refusal():
    begun = asyncio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await asyncio.Event().wait()

    gate = RequestGate(app, FACTS)
    client = OpenRequest(gate)
    await begun.wait()
    await gate.stop(0)
    assert client.answer.cancelled(), "so that the server closes the connection"
    assert [event.get("status") for event in client.sent] == [200]


async def test_a_request_that_the_server_cancels_is_not_answered():
    app = Reader()
    client = OpenRequest(RequestGate(app, FACTS))
    client.say(b"", more=False)
    await app.working.wait()
    client.answer.cancel()
    await asyncio.gather(client.answer, return_exceptions=True)
    assert client.answer.cancelled()
    assert client.sent == []


async def test_work_that_needs_time_to_end_is_cancelled_only_once_and_its_request_still_answered():
    """Half a body is refused at the start of the stop, and is still in progress when the time for all is over."""
    cleaning, clean = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        try:
            await receive()
        finally:
            cleaning.set()
            await clean.wait()

    gate = RequestGate(app, FACTS)
    client = OpenRequest(gate)
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(gate.stop(0))
    await cleaning.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    clean.set()
    await stopping
    await client.answer
    assert client.sent[0]["status"] == 503


def connected() -> Connection:
    connection = Connections(ConnectionLimits(), lambda: 0.0).admit("192.0.2.1")
    assert connection is not None
    return connection


async def passed(gate: RequestGate, connection: Connection, receive=None) -> list[dict]:
    """What is sent on this connection as the answer to a GET."""
    sent: list[dict] = []

    async def send(event):
        sent.append(event)

    await gate({"type": "http", "method": "GET", "path": "/", "state": {CONNECTION: connection}}, receive, send)
    return sent


async def test_work_that_nobody_waits_for_is_cancelled_and_nothing_is_sent():
    entered, ended = asyncio.Event(), []

    async def app(scope, receive, send):
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    connection = connected()
    running = asyncio.ensure_future(passed(RequestGate(app, FACTS), connection))
    await entered.wait()
    connection.end()

    assert await running == []
    assert ended == ["cancelled"]
    assert connection.request is None


async def test_an_app_that_listens_for_the_end_of_its_client_decides_itself_what_it_finishes():
    listening, news, finished = asyncio.Event(), asyncio.Event(), []

    async def app(scope, receive, send):
        await receive()
        watch = asyncio.ensure_future(receive())
        await listening.wait()
        finished.append((await watch)["type"])

    messages = iter([{"type": "http.request", "more_body": False}, {"type": "http.disconnect"}])

    async def receive():
        message = next(messages)
        if message["type"] == "http.disconnect":
            listening.set()
            await news.wait()
        return message

    connection = connected()
    running = asyncio.ensure_future(passed(RequestGate(app, FACTS), connection, receive))
    await listening.wait()
    connection.leave()
    news.set()
    await running

    assert finished == ["http.disconnect"]


async def test_a_request_whose_client_has_left_is_not_begun_and_one_too_many_of_a_client_is_refused():
    begun = []

    async def app(scope, receive, send):
        begun.append(scope)

    gate, left, refused, closed = RequestGate(app, FACTS), connected(), connected(), []
    left.transport = SimpleNamespace(close=lambda: closed.append("left"))
    left.leave()
    refused.is_refused = True

    assert await passed(gate, left) == []
    assert closed == ["left"], "or the server would answer 500 to a client that ended only its own side"
    start, body = await passed(gate, refused)
    assert (start["status"], json.loads(body["body"])["error"]) == (503, "overloaded")
    assert begun == []
