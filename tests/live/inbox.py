"""A receiver of webhooks on this machine."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Inbox:
    """Takes every delivery, and keeps the headers and the body of each."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.arrived = threading.Condition()
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with inbox.arrived:
                    inbox.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
                    inbox.arrived.notify_all()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def wait(self, count: int, within_s: float = 30) -> list[tuple[dict[str, str], bytes]]:
        """All that arrived, once there are so many."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, within_s), len(self.requests)
        return self.requests

    def ids(self) -> set[str]:
        """The ids of the deliveries; one that was sent again keeps its own."""
        with self.arrived:
            return {headers["webhook-id"] for headers, _ in self.requests}

    def close(self) -> None:
        """Take nothing more."""
        self._server.shutdown()
        self._server.server_close()
