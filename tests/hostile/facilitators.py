"""A facilitator of x402 payments on a port of this machine. It makes every payment once, whatever the signature."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import httpx

from tests.money.x402.parts import Script


class RunningFacilitator(NamedTuple):
    """Where it listens, and the payments it made."""

    url: str
    script: Script


@contextmanager
def facilitating() -> Iterator[RunningFacilitator]:
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = httpx.Request(self.command, f"http://facilitator{self.path}", content=body)
            answer = asyncio.run(script(request))
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield RunningFacilitator(f"http://127.0.0.1:{server.server_port}", script)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
