"""uvicorn: the version that our protocol fits. What it refuses is tried on the running server in tests/hostile."""

import logging
from importlib.metadata import version

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolserver.server import uvicorn_server


def test_the_seam_fits_this_version():
    """If this fails after an update: read HttpToolsProtocol's callbacks again, then change the version here."""
    assert version("uvicorn") == "0.54.0"
    assert version("httptools") == "0.9.0"
    ours = uvicorn_server.StrictHttpToolsProtocol
    for name in ("on_message_begin", "on_header", "on_headers_complete", "on_message_complete", "on_response_complete"):
        assert getattr(HttpToolsProtocol, name) is not getattr(ours, name)


def test_what_a_stranger_can_cause_at_will_is_not_logged():
    def line(words: str) -> bool:
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, words, (), None)
        return uvicorn_server._is_worth_a_line(record)

    assert [line("Invalid HTTP request received."), line("Unsupported upgrade request.")] == [False, False]
    assert line("Exception in ASGI application\n")
