"""An upstream that answers every request with a body far larger than it looks, as gzip or not."""

import gzip
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MIB = 1 << 20
GZIP_HEAD = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # no name, no time, no system


def zip_repeated(piece: bytes, times: int, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """Gzip a body of any size without making it: `piece` so many times, between two ends. The piece is packed once."""
    zipper = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    first, middle = (zipper.compress(part) + zipper.flush(zlib.Z_FULL_FLUSH) for part in (before, piece))
    last = zipper.compress(after) + zipper.flush()
    checksum = zlib.crc32(before)
    for _ in range(times):
        checksum = zlib.crc32(piece, checksum)
    size = len(before) + times * len(piece) + len(after)
    end = struct.pack("<II", zlib.crc32(after, checksum), size & 0xFFFFFFFF)
    return GZIP_HEAD + first + middle * times + last + end


BODIES: dict[str, Callable[[], bytes]] = {
    "a gigabyte of blanks": lambda: zip_repeated(b" " * MIB, 1024),
    "two megabytes of empty lists": lambda: zip_repeated(b"[]," * 90_000, 7, before=b"[", after=b"[]]"),
    "sixteen megabytes of empty lists": lambda: zip_repeated(b"[]," * 250_000, 20, before=b"[", after=b"[]]"),
    "twenty megabytes of text": lambda: zip_repeated(b'{"a": "%s"}\n' % (b"x" * 1000) * 1000, 20),
    "a hundred thousand members": lambda: gzip.compress(b"") * 100_000,
    "damaged": lambda: zip_repeated(b" " * MIB, 1)[:-20],
}
"""How each is made."""


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
