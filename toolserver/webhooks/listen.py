"""Receive webhooks for development: verify and report requests that arrive on a port of this machine."""

import itertools
import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from toolserver.webhooks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, verify_service

MOST_BYTES = 2 * 1024 * 1024
SHOWN = 2000


class ReceivedWebhook(NamedTuple):
    """A received request. `valid` says whether its signature is valid; None if no secret is known."""

    valid: bool | None
    headers: dict[str, str]
    body: bytes

    def describe(self) -> str:
        """Return a few lines for a terminal: the verdict, the ids and the beginning of the body."""
        verdict = {True: "signature valid", False: "SIGNATURE INVALID", None: "not verified (use --secret)"}[self.valid]
        names = ("webhook-id", "x-service-subscription", "x-service-timestamp", "x-service-receipt-id")
        ids = "  ".join(f"{name}={self.headers[name]}" for name in names if name in self.headers)
        return f"{verdict}  {ids}\n{_pretty(self.body)}"


def _pretty(body: bytes) -> str:
    try:
        text = json.dumps(json.loads(body), indent=2, ensure_ascii=True)
    except ValueError:
        text = ascii(body)
    return text if len(text) <= SHOWN else text[:SHOWN] + f"\n… {len(text) - SHOWN} characters more"


def make_listener(
    port: int,
    secret: str | None,
    report: Callable[[ReceivedWebhook], None],
    *,
    status: int = 204,
    count: int | None = None,
) -> ThreadingHTTPServer:
    """Return a server on 127.0.0.1 that answers `status` to validly signed requests and 401 to others.

    With `count`, `serve_forever` returns after this many requests.
    """
    answered = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(min(length, MOST_BYTES))
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = ReceivedWebhook(_is_valid(secret, headers, body), headers, body)
            report(received)
            self.send_response(401 if received.valid is False else status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            if next(answered) == count:
                self.server.shutdown()

        def log_message(self, *_: Any) -> None:
            """Log nothing: requests are already reported."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _is_valid(secret: str | None, headers: dict[str, str], body: bytes) -> bool | None:
    if secret is None:
        return None
    signature, timestamp = headers.get(SIGNATURE_HEADER.lower(), ""), headers.get(TIMESTAMP_HEADER.lower(), "")
    return verify_service(secret, signature, timestamp, body, now=time.time())
