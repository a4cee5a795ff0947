"""uvicorn: the version that our protocol fits. What it refuses is tried on the running server in tests/hostile."""

import asyncio
import logging
from importlib.metadata import version
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolserver.serving import uvicorn_server


def test_the_seam_fits_this_version():
    """If this fails after an update: read HttpToolsProtocol's callbacks again, then change the version here."""
    assert version("uvicorn") == "0.54.0"
    assert version("httptools") == "0.9.0"
    ours = uvicorn_server.StrictHttpToolsProtocol
    for name in ("on_message_begin", "on_header", "on_headers_complete", "on_message_complete", "on_response_complete"):
        assert getattr(HttpToolsProtocol, name) is not getattr(ours, name)


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
async def test_a_connection_that_ended_leaves_no_timer_that_keeps_it_alive(error):
    config = uvicorn.Config(app=None, ws="none")
    config.load()
    transport = Mock(is_closing=lambda: False, get_extra_info=lambda name, default=None: None)
    protocol = uvicorn_server.StrictHttpToolsProtocol(config, uvicorn_server.UvicornServer(config).server_state, {})
    protocol.ours = Mock()
    protocol.connection_made(transport)
    protocol.on_response_complete()  # from here on it waits for the next request, for so many seconds
    waiting = protocol.timeout_keep_alive_task
    protocol.connection_lost(error)
    assert waiting.cancelled()


def test_what_a_stranger_can_cause_at_will_is_not_logged():
    def line(words: str) -> bool:
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, words, (), None)
        return uvicorn_server.is_worth_a_line(record)

    assert [line("Invalid HTTP request received."), line("Unsupported upgrade request.")] == [False, False]
    assert line("Exception in ASGI application\n")


class Wire(asyncio.Transport):
    """A transport that keeps what is written to it and notes how it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.ends = b"", []

    def write(self, data):
        self.sent += data

    def write_eof(self):
        self.ends.append("write_eof")

    def close(self):
        self.ends.append("close")

    def is_closing(self):
        return "close" in self.ends

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Phases:
    """A connection that notes what it is told."""

    is_proxied = False

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, name: str):
        return lambda *_: self.told.append(name)


async def say(*pieces: bytes, status: int = 200, reads_on: bool = False) -> tuple[Wire, Phases]:
    """What an app made of these pieces of one connection that begins to answer every request at once.

    It answers as a whole at once, or reads the rest of the body first.
    """

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
        while reads_on and (await receive())["more_body"]:
            pass
        await send({"type": "http.response.body", "body": b"{}"})

    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    protocol = uvicorn_server.StrictHttpToolsProtocol(config, uvicorn_server.UvicornServer(config).server_state, {})
    wire, phases = Wire(), Phases()
    protocol.ours = phases
    protocol.connection_made(wire)
    for piece in pieces:
        protocol.data_received(piece)
        for _ in range(5):
            await asyncio.sleep(0)
    ends = list(wire.ends)
    protocol.connection_lost(None)
    wire.ends = ends  # without what uvicorn does once the client has gone
    return wire, phases


HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"


async def test_an_answer_before_the_end_of_the_body_is_the_last_and_is_not_lost_by_a_reset():
    """The rest of the body, and what follows it, is read by nobody: a plain close would reset the connection."""
    wire, phases = await say(HEAD + b"ab", b"cd" + HEAD + b"abcd", status=408)

    assert wire.sent.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in wire.sent
    assert wire.ends == ["write_eof"]
    assert phases.told == ["begin", "await_head", "await_body", "await_end", "end"]


async def test_an_answer_that_was_announced_as_the_last_is_the_last_even_if_the_body_ends_before_it():
    wire, _ = await say(HEAD + b"ab", b"cd", reads_on=True)

    assert b"\r\nconnection: close\r\n" in wire.sent
    assert wire.sent.endswith(b"{}")
    assert wire.ends == ["close"]


async def test_an_answer_after_the_end_of_the_body_leaves_the_connection_open():
    wire, phases = await say(HEAD + b"ab" + b"cd", HEAD + b"abcd")

    assert wire.sent.count(b"HTTP/1.1 200") == 2
    assert b"connection: close" not in wire.sent
    assert wire.ends == []
    assert phases.told == ["begin", *["await_head", "await_body", "work", "await_request"] * 2, "end"]


async def test_an_app_that_ends_with_its_client_is_no_fault_even_if_another_request_came_behind_it(caplog):
    ended = asyncio.Event()

    async def app(scope, receive, send):
        await ended.wait()

    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    protocol = uvicorn_server.StrictHttpToolsProtocol(config, uvicorn_server.UvicornServer(config).server_state, {})
    wire, protocol.ours = Wire(), Phases()
    protocol.connection_made(wire)
    protocol.data_received(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
    await asyncio.sleep(0)
    protocol.connection_lost(None)
    ended.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (wire.sent, caplog.messages) == (b"", [])
