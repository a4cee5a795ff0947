"""Plain sockets, to say what no client library would say."""

import socket
import time


class Heard:
    """What came back on a connection, whether the other side ended it, and after how many seconds."""

    def __init__(self, data: bytes, *, ended: bool, seconds: float) -> None:
        self.data, self.ended, self.seconds = data, ended, seconds

    @property
    def status(self) -> int | None:
        """The status of the first answer, if there is one."""
        return int(self.data.split()[1]) if self.data.startswith(b"HTTP/1.1 ") else None


def say(address: tuple[str, int], data: bytes, *, within_s: float = 5, half_close: bool = False) -> Heard:
    """Send some bytes on a new connection and listen until the other side ends it or the time is over."""
    start = time.monotonic()
    with socket.create_connection(address, timeout=within_s) as sock:
        sock.sendall(data)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        heard = b""
        while (left := start + within_s - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                piece = sock.recv(65536)
            except TimeoutError:
                break
            except ConnectionResetError:
                piece = b""
            if not piece:
                return Heard(heard, ended=True, seconds=time.monotonic() - start)
            heard += piece
    return Heard(heard, ended=False, seconds=time.monotonic() - start)
