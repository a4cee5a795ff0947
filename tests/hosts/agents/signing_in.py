"""Signing in by the Python SDK's own code: it opens the browser that BROWSER names, and waits for it to come back."""

import asyncio
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata


class Kept:
    """Where the SDK keeps what it got."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


def sign_in(url: str) -> OAuthClientProvider:
    came_back, query = threading.Event(), {}

    class Callback(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query.update(parse_qs(urlsplit(self.path).query))
            self.send_response(200)
            self.end_headers()
            came_back.set()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def open_browser(address: str) -> None:
        await asyncio.create_subprocess_exec(os.environ["BROWSER"], address)

    async def wait_for_callback() -> tuple[str, str | None]:
        await asyncio.to_thread(came_back.wait)
        return query["code"][0], query.get("state", [None])[0]

    redirect = f"http://127.0.0.1:{server.server_port}/callback"
    wanted = OAuthClientMetadata.model_validate({"client_name": "An agent", "redirect_uris": [redirect]})
    return OAuthClientProvider(url, wanted, Kept(), open_browser, wait_for_callback)
