"""Listening: sockets bound before anything else, the HTTP server of choice, the ready line, a graceful end."""

import asyncio
import contextlib
import functools
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from toolserver.metrics import Metrics
from toolserver.settings import Settings, is_loopback

log = logging.getLogger(__name__)

BACKLOG = 2048  # hypercorn's own 100 loses connections when many come at once
GRACE_S = 8.0


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 picks a free one. Raises SystemExit, with a message, when it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host.strip("[]"), port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        why = (error.strerror or str(error)).lower()
        raise SystemExit(f"cannot listen on {host}, port {port}: {why}; port 0 picks a free one") from None
    sock.setblocking(False)
    return sock


def address_of(sock: socket.socket, host: str) -> str:
    """The address people type: wildcard addresses are reachable as localhost."""
    port = sock.getsockname()[1]
    shown = "localhost" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


def settled() -> None:
    """Start-up is over: what it made stays for good, and from here on there is garbage to collect."""
    gc.freeze()
    gc.enable()


def announce(**facts: Any) -> None:
    """The ready line: exactly one JSON line on stdout."""
    sys.stdout.write(json.dumps({"ready": True, **facts, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()


async def stop_signal(stop: anyio.Event) -> None:
    """Wait for SIGTERM or SIGINT, then set the event; a second signal ends the process at once."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            if stop.is_set():
                os._exit(130)
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            stop.set()


async def serve(app: Any, sock: socket.socket, settings: Settings, *, stop: anyio.Event) -> None:
    """Serve an ASGI app on a bound socket until the event is set."""
    run = _uvicorn if settings.server == "uvicorn" else _hypercorn
    await run(app, sock, stop)


async def _hypercorn(app: Any, sock: socket.socket, stop: anyio.Event) -> None:
    from hypercorn.asyncio import serve as hypercorn_serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{sock.fileno()}"]
    config.backlog = BACKLOG
    config.keep_alive_max_requests = 10**9
    config.graceful_timeout = GRACE_S
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.h11_max_incomplete_size = 64 * 1024
    asyncio.get_running_loop().set_exception_handler(_unless_cancelled)
    async with anyio.create_task_group() as tasks:  # in a task of its own: it leaves that one half cancelled
        tasks.start_soon(functools.partial(hypercorn_serve, app, config, shutdown_trigger=stop.wait))
    sock.detach()


def _unless_cancelled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Python 3.11 reports it as an error when a connection that is still open at the end is cancelled."""
    if not isinstance(context.get("exception"), asyncio.CancelledError):
        loop.default_exception_handler(context)


def _not_cancelled(record: logging.LogRecord) -> bool:
    """So does uvicorn, after having said in a line that it cancels what does not end in time."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


async def _uvicorn(app: Any, sock: socket.socket, stop: anyio.Event) -> None:
    try:
        import uvicorn
    except ImportError as error:  # pragma: no cover - the development extra brings it
        raise SystemExit("--server uvicorn needs the extra 'fast': pip install 'toolserver[fast]'") from error

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        proxy_headers=False,  # who the client is, is ours to judge: trusted proxies are a setting
        timeout_graceful_shutdown=int(GRACE_S),
        server_header=False,
    )
    server = uvicorn.Server(config)
    logging.getLogger("uvicorn.error").addFilter(_not_cancelled)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]  # signals are ours
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await stop.wait()
            server.should_exit = True

        tasks.start_soon(watch)
        await server.serve(sockets=[sock])
        tasks.cancel_scope.cancel()
    if not server.started:
        raise SystemExit(1)


def metrics_app(metrics: Callable[[], Metrics | None]) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """`/metrics` and nothing else."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _idle_lifespan(receive, send)
            return
        found = metrics() if scope["type"] == "http" and scope["path"] == "/metrics" else None
        status, body = (200, found.text()) if found else (404, b"not here\n")
        kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
        await send({"type": "http.response.start", "status": status, "headers": [kind]})
        await send({"type": "http.response.body", "body": body})

    return app


async def _idle_lifespan(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def serve_metrics(
    settings: Settings, sock: socket.socket, metrics: Callable[[], Metrics | None], stop: anyio.Event
) -> None:
    """The metrics listener, beside the service."""
    await _hypercorn(metrics_app(metrics), sock, stop)


def loop_factory(settings: Settings) -> Any:
    """uvloop for uvicorn where it is installed; the standard loop otherwise."""
    if settings.server != "uvicorn":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run_async(settings: Settings, main: Callable[..., Awaitable[None]], *args: Any, **named: Any) -> None:
    """Run a coroutine function on the loop that fits the settings."""
    options = {"loop_factory": factory} if (factory := loop_factory(settings)) else {}
    try:
        anyio.run(functools.partial(main, *args, **named), backend_options=options)
    except BaseExceptionGroup as group:
        ending = _ending(group)
        if ending is None:
            raise
        raise ending from None


def _ending(group: BaseExceptionGroup[BaseException]) -> SystemExit | None:
    """The wish to end the program, with its message, that task groups have wrapped."""
    for error in group.exceptions:
        found = _ending(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SystemExit):
            return found
    return None


def refuse_public(settings: Settings, what: str) -> None:
    """Things for development only never listen where others can reach them. Raises SystemExit."""
    if not is_loopback(settings.host):
        raise SystemExit(f"{what} is for development: it listens on this machine only, not on {settings.host}")
