"""Bind listening sockets, run the chosen HTTP server, print the ready line and stop gracefully."""

import asyncio
import ctypes
import errno
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
from urllib.parse import urlsplit

import anyio

from toolserver.core.caller import Addresses
from toolserver.core.metrics import Metrics
from toolserver.core.public_address import is_local_host
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.admission import ConnectionLimits, Connections
from toolserver.serving.connections import Asgi, Refusals, RequestGate, StopTimes, never
from toolserver.serving.public_facts import read_public_facts
from toolserver.settings import PREFIX, Settings, is_loopback
from toolserver.sql.failures import find_exit

log = logging.getLogger(__name__)

BACKLOG = 2048  # hypercorn's own 100 loses connections when many come at once
SWITCH_S = 0.001  # how long a parsing thread may block the event loop; the usual 5 ms add up for each answer
YOUNG = 10_000  # allocations between two collections of the youngest objects
_ARENA_MAX = -8  # for mallopt, from glibc's malloc.h


def bind_socket(host: str, port: int, *, setting: str = "--port", beside_others: bool = False) -> socket.socket:
    """Open a listening socket; port 0 picks a free port. Raises SystemExit, with a message, if that fails.

    `setting` names the flag or the setting of the port. With `beside_others`, other sockets
    opened in the same way may listen on the same port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # If the protocol is named, asyncio sets TCP_NODELAY on each connection. Otherwise the body of an answer waits in
    # the kernel until its head is acknowledged, which clients delay by 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if beside_others:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host.strip("[]"), port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise SystemExit(describe_bind_error(error, host, port, setting)) from None
    sock.setblocking(False)
    return sock


def describe_bind_error(error: OSError, host: str, port: int, setting: str = "--port") -> str:
    """Say why a port cannot be listened on, and what to set."""
    why = (error.strerror or str(error)).lower()
    place, wanted = setting, "a free port, or to 0, which picks one"
    if error.errno == errno.EADDRNOTAVAIL:
        place, wanted = setting.replace("port", "host"), "an address of this machine"
    name = place if place.startswith("-") else f"{place} ({PREFIX}{place.replace('.', '__').upper()})"
    return f"cannot listen on {host}, port {port}: {why}; set {name} to {wanted}"


def address_of(sock: socket.socket, host: str) -> str:
    """Return the base URL of a socket. A wildcard address becomes localhost, where it can be reached."""
    port = sock.getsockname()[1]
    shown = "localhost" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


def freeze_startup() -> None:
    """Turn garbage collection on once the service has started. Objects from start-up stay and are never scanned.

    The youngest objects are collected every `YOUNG` allocations. With CPython's 700, the
    collector scans every request in progress several times and finds nothing.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    gc.enable()


def share_heap() -> bool:
    """Make all threads use one heap, since Python's threads take turns anyway. Return False if libc cannot do that.

    After six minutes of load with every thread parsing, the server used 245 MB instead of 288
    MB.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_ARENA_MAX, 1) == 1


def announce(**facts: Any) -> None:
    """Print the ready line: exactly one JSON line on stdout."""
    sys.stdout.write(json.dumps({"ready": True, **facts, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()


async def stop_signal(stop: anyio.Event, before_exit: Callable[[], None] = lambda: None) -> None:
    """Wait for SIGTERM or SIGINT, then set the event; a second signal ends the process at once, after `before_exit`."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            if stop.is_set():
                before_exit()
                os._exit(130)
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            stop.set()


async def serve(
    app: Any,
    sock: socket.socket,
    settings: Settings,
    *,
    stop: anyio.Event,
    is_replaced: Callable[[], bool] = never,
    connections: Connections | None = None,
) -> None:
    """Serve an ASGI app on a bound socket until the event is set. Raises SystemExit if the app ends before that.

    `is_replaced` says, once the event is set, whether another process continues to serve on
    the same socket. `connections` has those of the socket, for a caller that measures them.
    """
    facts = read_facts_at(settings, sock)
    connections = connections or make_connections(settings, asyncio.get_running_loop().time, facts)
    await _serve(RequestGate(app, facts, is_replaced), sock, settings, connections, stop)


def read_facts_at(settings: Settings, sock: socket.socket) -> SiteFacts:
    """Return the public facts of a service at its base URL, without one at the address of this socket."""
    return read_public_facts(settings, settings.base_url or address_of(sock, settings.host))


def make_connections(settings: Settings, now: Callable[[], float], facts: SiteFacts) -> Connections:
    """Return no connections yet, limited by the settings. Trusted proxies bring many clients over one address."""
    limits = settings.limits
    bounds = ConnectionLimits(
        in_all=limits.connections,
        per_client=limits.connections_per_client if limits.enabled else limits.connections,
        head_s=limits.head_s,
        body_s=limits.body_s,
        idle_s=limits.idle_s,
        write_s=limits.write_s,
    )
    return Connections(bounds, now, Addresses(limits.trusted_proxies), Refusals(facts).full_bytes)


async def _serve(
    gate: RequestGate, sock: socket.socket, settings: Settings, connections: Connections, stop: anyio.Event
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_unless_cancelled)
    ended = asyncio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_set_when, ended, stop, gate.died)
        times = StopTimes(drain_s=settings.serving.drain_s)
        await _run_of(settings.server)(gate, sock, connections, ended, times)
        tasks.cancel_scope.cancel()
    if gate.died.is_set() and not stop.is_set():
        raise SystemExit("the service ended unexpectedly; the log says why")


def _run_of(server: str) -> Callable[..., Awaitable[None]]:
    if server != "uvicorn":
        from toolserver.serving.hypercorn_server import serve_hypercorn

        return serve_hypercorn
    try:
        from toolserver.serving.uvicorn_server import serve_uvicorn
    except ImportError as error:  # pragma: no cover - the development extra installs it
        raise SystemExit(
            "--server uvicorn needs the packages uvicorn, uvloop and httptools (the extra `fast`)"
        ) from error
    return serve_uvicorn


async def _set_when(ended: asyncio.Event, stop: anyio.Event, died: asyncio.Event) -> None:
    """Set `ended` as soon as either of the two other events is set."""
    async with anyio.create_task_group() as tasks:

        async def wait_for(event: anyio.Event | asyncio.Event) -> None:
            await event.wait()
            ended.set()
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait_for, stop)
        tasks.start_soon(wait_for, died)


def _unless_cancelled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle errors of the loop, but ignore the cancelling of a connection, which Python 3.11 reports as an error."""
    if not isinstance(context.get("exception"), asyncio.CancelledError):
        loop.default_exception_handler(context)


def metrics_app(
    metrics: Callable[[], Metrics | None],
    pages: Callable[[], Asgi | None] = lambda: None,
    *,
    is_private: bool = True,
) -> Asgi:
    """Return an ASGI app that serves `/metrics`, and `pages` elsewhere. Both return None until the service runs.

    `is_private`: only this machine reaches it, so a request for another host name is of a web
    page whose name was made to lead here, and is refused.
    """

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _idle_lifespan(receive, send)
            return
        is_metrics = scope["type"] == "http" and scope["path"] == "/metrics"
        if scope["type"] == "http" and not is_metrics and (others := pages()) is not None:
            await others(scope, receive, send)
            return
        counters = metrics() if is_metrics else None
        status, body = (200, counters.text()) if counters else (404, b"not here\n")
        if is_private and not _is_for_this_machine(scope):
            status, body = 421, b"this server does not answer to that host name\n"
        kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
        await send({"type": "http.response.start", "status": status, "headers": [kind]})
        await send({"type": "http.response.body", "body": body})

    return app


def _is_for_this_machine(scope: Any) -> bool:
    """Return True if a request names this machine as its host, or no host at all, as no browser does."""
    host = dict(scope["headers"]).get(b"host", b"localhost").decode("latin-1")
    try:
        return is_local_host(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


async def _idle_lifespan(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def serve_metrics(
    settings: Settings,
    sock: socket.socket,
    metrics: Callable[[], Metrics | None],
    stop: anyio.Event,
    pages: Callable[[], Asgi | None] = lambda: None,
    *,
    is_replaced: Callable[[], bool] = never,
) -> None:
    """Serve the metrics and the pages for operators on their own socket until the event is set."""
    facts = read_public_facts(settings, settings.base_url or address_of(sock, settings.metrics.host))
    app = metrics_app(metrics, pages, is_private=is_loopback(settings.metrics.host))
    gate = RequestGate(app, facts, is_replaced)
    connections = Connections(ConnectionLimits(), asyncio.get_running_loop().time)
    await _serve(gate, sock, settings, connections, stop)


def loop_factory(settings: Settings) -> Any:
    """Return uvloop's factory for uvicorn if it is installed, else None for the standard event loop."""
    if settings.server != "uvicorn":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run_async(settings: Settings, main: Callable[..., Awaitable[None]], *args: Any, **named: Any) -> None:
    """Run a coroutine function on the event loop for these settings. Raises the SystemExit that ended a task."""
    share_heap()
    sys.setswitchinterval(SWITCH_S)
    options = {"loop_factory": factory} if (factory := loop_factory(settings)) else {}
    try:
        anyio.run(functools.partial(main, *args, **named), backend_options=options)
    except BaseExceptionGroup as group:
        ending = find_exit(group)
        if ending is None:
            raise
        raise ending from None


def refuse_public(settings: Settings, what: str) -> None:
    """Raise SystemExit if something for development would be reachable from other machines."""
    if not is_loopback(settings.host):
        raise SystemExit(f"{what} is for development and listens on this machine only, not on {settings.host}")
