"""Stopping: new requests are refused; but a process that is replaced leaves them to the next one on its socket."""

import asyncio

import pytest

from toolserver.registry.site_facts import SiteFacts
from toolserver.serving import draining
from toolserver.serving.connections import ConnectionLimits, Connections
from toolserver.serving.draining import stop_accepting
from toolserver.serving.request_gate import RequestGate

FACTS = SiteFacts(base_url="https://data.example", source="data.example")


class Listening:
    is_open = True

    def close(self):
        self.is_open = False


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
    await send({"type": "http.response.body", "body": b"yes"})


async def ask(gate):
    """The status of an answer, and its headers."""
    sent = []

    async def send(message):
        sent.append(message)

    await gate({"type": "http", "method": "GET", "path": "/"}, None, send)
    return sent[0]["status"], sent[0]["headers"]


@pytest.fixture
def parts():
    return Listening(), Connections(ConnectionLimits(), lambda: 0.0)


async def test_a_service_that_ends_refuses_what_comes_while_it_accepts(parts):
    listener, connections = parts
    gate = RequestGate(answer, FACTS)
    assert await ask(gate) == (200, [(b"x", b"y")])
    await stop_accepting(gate, listener, connections, 0)
    assert not listener.is_open
    assert (await ask(gate))[0] == 503


async def test_one_that_is_replaced_answers_over_connections_it_has_and_each_answer_is_the_last(parts):
    listener, connections = parts
    kept = connections.admit("192.0.2.1")
    gate = RequestGate(answer, FACTS, lambda: True)
    leaving = asyncio.ensure_future(stop_accepting(gate, listener, connections, 5))
    await asyncio.sleep(0)
    assert not listener.is_open
    assert await ask(gate) == (200, [(b"x", b"y"), (b"connection", b"close")])
    assert not leaving.done()
    kept.end()
    await leaving


@pytest.mark.parametrize("service_ends", [True, False])
async def test_clients_that_keep_silent_are_not_waited_for_without_end(parts, monkeypatch, service_ends):
    monkeypatch.setattr(draining, "HAND_OVER_S", 60.0 if service_ends else 0.01)
    listener, connections = parts
    connections.admit("192.0.2.1")
    answers = iter([True, True])
    gate = RequestGate(answer, FACTS, lambda: next(answers, not service_ends))
    async with asyncio.timeout(20):
        await stop_accepting(gate, listener, connections, 0)
    assert (await ask(gate))[0] == 503
