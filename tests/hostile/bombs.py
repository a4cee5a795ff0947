"""An upstream that answers every request with a body far larger than it looks, as gzip or not."""

import gzip
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MIB = 1 << 20


def zip_repeated(piece: bytes, times: int, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """Gzip a body of any size without making it: `piece` so many times, between two ends."""
    zipper = zlib.compressobj(9, wbits=31)
    middle = b"".join(zipper.compress(piece) for _ in range(times))
    return zipper.compress(before) + middle + zipper.compress(after) + zipper.flush()


BODIES: dict[str, Callable[[], bytes]] = {
    "a gigabyte of blanks": lambda: zip_repeated(b" " * MIB, 1024),
    "two megabytes of empty lists": lambda: zip_repeated(b"[]," * 1000, 630, before=b"[", after=b"[]]"),
    "sixteen megabytes of empty lists": lambda: zip_repeated(b"[]," * 1000, 5000, before=b"[", after=b"[]]"),
    "twenty megabytes of text": lambda: zip_repeated(b'{"a": "%s"}\n' % (b"x" * 1000), 20_000),
    "a hundred thousand members": lambda: gzip.compress(b"") * 100_000,
    "damaged": lambda: zip_repeated(b" " * MIB, 1)[:-20],
}
"""How each is made: it takes seconds."""


class BombServer(ThreadingHTTPServer):
    """Answers 404 until it has a `body`, which it sends. `hit` is the hosts that were asked for since then."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body = b""
        self.hit: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: BombServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.server.body
        if body:
            self.server.hit.add(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def log_message(self, format: str, *values: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            pass  # the client has read enough


@contextmanager
def bombs() -> Iterator[BombServer]:
    """A running bomb server."""
    server = BombServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
