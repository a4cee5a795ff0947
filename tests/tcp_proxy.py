"""Run a small proxy in front of a server that cuts, slows and hangs connections as a network does. It uses threads."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

Fate = Literal["pass", "cut", "cut_after", "hang"]
"""What happens to bytes that a client sends: cut before they arrive, after they arrived, or never an answer again."""


class TcpProxy:
    """Passes on what comes to its `port`. `judge` decides about each piece that a client sends.

    The server is named by host and port, or by the path of its socket. It may be gone for a while: who connects
    meanwhile is cut.
    """

    def __init__(self, target: tuple[str, int] | str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.judge: Callable[[bytes], Fate] = lambda sent: "pass"
        self.hangs = threading.Event()  # while set nothing passes, in either direction, and new clients wait too
        self.delay_s = 0.0  # of each piece, in each direction
        self._open: set[socket.socket] = set()
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_all(self) -> None:
        """Cut every connection that is open."""
        for each in list(self._open):
            self._shut(each)

    def point_to(self, target: tuple[str, int]) -> None:
        """Lead whoever connects from now on to another server, and cut those that are open."""
        self._target = target
        self.cut_all()

    def close(self) -> None:
        """Take no more connections, and cut those that are open."""
        self._ended = True
        self.hangs.clear()
        self._shut(self._listener)
        self.cut_all()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            self._open |= {client, server}
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _connect(self) -> socket.socket:
        if not isinstance(self._target, str):
            return socket.create_connection(self._target)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            server.close()
            raise
        return server

    def _pump(self, source: socket.socket, target: socket.socket, judged: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                fate = self.judge(data) if judged else "pass"
                if fate == "hang":
                    self.hangs.set()
                while self.hangs.is_set():
                    time.sleep(0.01)
                if self.delay_s:
                    time.sleep(self.delay_s)
                if fate == "cut_after":  # its answer must not get through: close that direction first
                    self._shut(source)
                if fate != "cut":
                    target.sendall(data)
                if fate in ("cut", "cut_after"):
                    break
        if not judged or source in self._open:
            time.sleep(0.05)  # what was sent last still arrives
        self._shut(source)
        self._shut(target)

    def _shut(self, each: socket.socket) -> None:
        self._open.discard(each)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


def proxy_before(url: str) -> tuple[TcpProxy, str]:
    """A proxy before the server of a URL, and the URL that leads through it; `unix://` is that of a Redis."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        proxy = TcpProxy(parts.path)
        return proxy, f"redis://127.0.0.1:{proxy.port}"
    proxy = TcpProxy((parts.hostname or "127.0.0.1", parts.port or 5432))
    user = f"{parts.username}@" if parts.username else ""
    return proxy, parts._replace(netloc=f"{user}127.0.0.1:{proxy.port}").geturl()
