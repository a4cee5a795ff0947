"""The 503 of a request that is refused before any part of the service has seen it."""

import json

from toolserver.core.caller import new_request_id
from toolserver.errors import CallRejected, Overloaded, ShuttingDown
from toolserver.registry import error_codes
from toolserver.registry.site_facts import SiteFacts

STOPPING_S, FULL_S = 5, 1  # seconds after which a refused client may come again


class Refusals:
    """Writes the refusals of one service: status, headers and a body of problem+json."""

    def __init__(self, facts: SiteFacts) -> None:
        self._facts = facts
        self.stopping = ShuttingDown(
            f"The service is stopping. Try again in {STOPPING_S} seconds.", retry_after_seconds=STOPPING_S
        )
        self.full = Overloaded(
            "The service has no room for this request, and this address has more than its share of it.",
            retry_after_seconds=FULL_S,
        )

    def write(self, refusal: CallRejected) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return headers and body. The connection closes after the answer."""
        request_id = new_request_id()
        problem = error_codes.body(
            refusal.code, refusal.detail, facts=self._facts, request_id=request_id, **refusal.extra
        )
        body = json.dumps(problem).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % refusal.extra["retry_after_seconds"]),
            (b"cache-control", b"no-store"),
            (b"access-control-allow-origin", b"*"),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        return headers, body

    def full_bytes(self) -> bytes:
        """Return the whole answer to a request that has no place, as it goes over the wire."""
        headers, body = self.write(self.full)
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (lines, body)
