"""Serve a cached answer by another framework: `python frameworks.py fastapi|starlette|litestar|nginx SERVER`.

The module does not import toolserver, so that it runs in an environment of its own. PAYLOAD names the file with the
answer.
"""

import asyncio
import hashlib
import json
import os
import secrets
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BODY = Path(os.environ["PAYLOAD"]).read_bytes()
ETAG = f'"{hashlib.sha256(BODY).hexdigest()[:32]}"'
PATH = "/api/btc-price"
HEADERS = {"cache-control": "public, max-age=30", "etag": ETAG, "x-content-type-options": "nosniff"}


class Limits:
    """Limits by address: a number of calls per day, and a minimum time between two."""

    def __init__(self, daily: int = 10**9, spacing_s: float = 1e-6) -> None:
        self._daily, self._spacing_s = daily, spacing_s
        self._counts: dict[str, tuple[int, float]] = {}

    def allow(self, client: str) -> bool:
        """Count a call; return whether it is within the limits."""
        count, last = self._counts.get(client, (0, 0.0))
        now = time.monotonic()
        if count >= self._daily or now - last < self._spacing_s:
            return False
        self._counts[client] = (count + 1, now)
        return True


LIMITS = Limits()


def client_of(headers: Any, peer: str) -> str:
    """Return the client behind the proxy."""
    forwarded = headers.get("x-forwarded-for")
    return forwarded.rpartition(",")[2].strip() if forwarded else peer


def add_policies(app: Any) -> None:
    """Add CORS, limits and request ids, as the documentation of Starlette and FastAPI writes middleware."""
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.responses import JSONResponse

    async def limit(request: Any, call_next: Any) -> Any:
        if not LIMITS.allow(client_of(request.headers, request.client.host)):
            return JSONResponse({"error": "rate_limited"}, 429)
        return await call_next(request)

    async def name(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-request-id"] = request.headers.get("x-request-id") or secrets.token_hex(8)
        return response

    app.add_middleware(BaseHTTPMiddleware, dispatch=limit)
    app.add_middleware(BaseHTTPMiddleware, dispatch=name)
    app.add_middleware(CORSMiddleware, allow_origins=["*"], expose_headers=["x-request-id", "etag"])


def fastapi() -> Any:
    from fastapi import FastAPI, Request, Response

    app = FastAPI()
    add_policies(app)

    @app.get(PATH)
    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == ETAG:
            return Response(status_code=304, headers=HEADERS)
        return Response(BODY, media_type="application/json", headers=HEADERS)

    return app


def starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == ETAG:
            return Response(status_code=304, headers=HEADERS)
        return Response(BODY, media_type="application/json", headers=HEADERS)

    app = Starlette(routes=[Route(PATH, answer)])
    add_policies(app)
    return app


def litestar() -> Any:
    from litestar import Litestar, Request, Response, get
    from litestar.config.cors import CORSConfig

    async def limit(request: Request[Any, Any, Any]) -> Response[Any] | None:
        peer = request.client.host if request.client else ""
        if not LIMITS.allow(client_of(request.headers, peer)):
            return Response({"error": "rate_limited"}, status_code=429)
        return None

    async def name_answer(response: Response[Any]) -> Response[Any]:
        response.headers["x-request-id"] = secrets.token_hex(8)
        return response

    @get(PATH, before_request=limit, after_request=name_answer)
    async def answer(request: Request[Any, Any, Any]) -> Response[bytes]:
        if request.headers.get("if-none-match") == ETAG:
            return Response(b"", status_code=304, headers=HEADERS)
        return Response(BODY, media_type="application/json", headers=HEADERS)

    return Litestar([answer], cors_config=CORSConfig(allow_origins=["*"]))


def announce(port: int) -> None:
    print(json.dumps({"base_url": f"http://127.0.0.1:{port}"}), flush=True)


async def serve(app: Any, server: str) -> None:
    """Serve on a free port until SIGTERM."""
    sock = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = sock.getsockname()[1]
    asyncio.get_running_loop().call_later(0.5, announce, port)
    if server == "uvicorn":
        import uvicorn

        config = uvicorn.Config(app, loop="none", http="httptools", log_level="error", access_log=False)
        await uvicorn.Server(config).serve([sock])
        return
    from hypercorn.asyncio import serve as hypercorn_serve
    from hypercorn.config import Config

    config = Config()
    config.bind, config.keep_alive_max_requests, config.loglevel = [f"fd://{sock.fileno()}"], 10**9, "error"
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await hypercorn_serve(app, config, shutdown_trigger=stop.wait)


def nginx() -> None:
    """Serve the same bytes as a file by one worker of nginx; this process becomes it."""
    folder = tempfile.mkdtemp(prefix="toolserver-nginx-")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    root = Path(folder, "root", "api")
    root.mkdir(parents=True)
    (root / "btc-price").write_bytes(BODY)
    Path(folder, "nginx.conf").write_text(
        f"daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;"
        " events { worker_connections 4096; } http { access_log off; default_type application/json;"
        f" keepalive_requests 1000000000; server {{ listen 127.0.0.1:{port}; root {folder}/root; }} }}"
    )
    if os.fork() == 0:  # the child announces that nginx is ready, and ends
        time.sleep(0.5)
        announce(port)
        os._exit(0)
    os.execvp("nginx", ["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"])


if __name__ == "__main__":
    if sys.argv[1] == "nginx":
        nginx()
    made = {"fastapi": fastapi, "starlette": starlette, "litestar": litestar}[sys.argv[1]]()
    if sys.argv[2] == "uvicorn":
        import uvloop

        uvloop.run(serve(made, "uvicorn"))
    else:
        asyncio.run(serve(made, "hypercorn"))
