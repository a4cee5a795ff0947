"""uvicorn: the version that our protocol fits. What it refuses is tried on the running server in tests/hostile."""

import logging
from importlib.metadata import version
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolserver.server import uvicorn_server


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
    protocol = uvicorn_server.StrictHttpToolsProtocol(config, uvicorn_server._Server(config).server_state, {})
    protocol.ours = Mock()
    protocol.connection_made(transport)
    protocol.on_response_complete()  # from here on it waits for the next request, for so many seconds
    waiting = protocol.timeout_keep_alive_task
    protocol.connection_lost(error)
    assert waiting.cancelled()


def test_what_a_stranger_can_cause_at_will_is_not_logged():
    def line(words: str) -> bool:
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, words, (), None)
        return uvicorn_server._is_worth_a_line(record)

    assert [line("Invalid HTTP request received."), line("Unsupported upgrade request.")] == [False, False]
    assert line("Exception in ASGI application\n")
