"""Collectors of traces that a service must outlive: silent, endless, refusing, and one that asks to be asked again."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE = b"x" * 65_536
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n\r\n"
AGAIN = b"HTTP/1.1 503 Busy\r\nRetry-After: 600\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
KINDS = ("refusing", "silent", "endless", "busy")


class Collector:
    """Takes connections on a port of this machine and answers each in its way, which is one of KINDS.

    `asked` are the requests that came, and `written` the bytes of answers that somebody took.
    """

    def __init__(self, kind: str) -> None:
        self.kind, self.asked, self.written = kind, 0, 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._open: list[socket.socket] = []
        if kind == "refusing":
            self._socket.close()
        else:
            threading.Thread(target=self._take, daemon=True).start()

    def close(self) -> None:
        """End every connection."""
        self._socket.close()
        for each in self._open:
            each.close()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._open.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(65_536)
            self.asked += 1
            if self.kind == "busy":
                connection.sendall(AGAIN)
            elif self.kind == "endless":
                connection.sendall(ENDLESS)
                while True:
                    self.written += connection.send(PIECE)
            while connection.recv(65_536):
                pass


@contextmanager
def collecting_badly(kind: str) -> Iterator[Collector]:
    """A collector, until the block ends."""
    collector = Collector(kind)
    try:
        yield collector
    finally:
        collector.close()
