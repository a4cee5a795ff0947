"""Run a service in this process: bind its sockets, start it, say that it is ready, and serve until it must stop."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from socket import socket

import anyio

from toolserver.app import App, Service, ServiceParts
from toolserver.cli.ready_notice import ReadyNotice
from toolserver.cli.serving_rules import check_before_serving
from toolserver.clock import Clock
from toolserver.core import tracing
from toolserver.mcp.sdk import McpExtension
from toolserver.serving.connections import Asgi, never
from toolserver.serving.data_directory import hold_directory, note_running
from toolserver.serving.listen import (
    freeze_startup,
    make_connections,
    read_facts_at,
    serve,
    serve_metrics,
    stop_signal,
)
from toolserver.serving.listeners import Listeners
from toolserver.settings import Settings


async def serve_command(settings: Settings, *, ready_json: bool, extension: McpExtension | None = None) -> None:
    """Run `toolserver serve` in this process until a signal stops it. For several workers, see `workers_command`."""
    check_before_serving(settings)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        await serve_until(settings, stop, ReadyNotice(ready_json), extension=extension)
        tasks.cancel_scope.cancel()


async def serve_until(
    settings: Settings,
    stop: anyio.Event,
    notice: ReadyNotice,
    *,
    extension: McpExtension | None = None,
    prepare: Callable[[Service], Awaitable[None]] | None = None,
    clock: Clock | None = None,
    listeners: Listeners | None = None,
    is_replaced: Callable[[], bool] = never,
) -> None:
    """Bind the sockets, start the service, publish the notice and serve until `stop` is set.

    `prepare` runs before the notice. `listeners` are already bound if another process supervises this one.
    `is_replaced` says, once `stop` is set, whether another process continues to serve on the same sockets. Raises
    SystemExit, with the reason, if the service cannot start.
    """
    if settings.tracing.enabled:
        tracing.switch_on()
    sockets = listeners or Listeners.open(settings)
    facts, now = read_facts_at(settings, sockets.main), asyncio.get_running_loop().time
    connections = make_connections(settings, now, facts)
    running: Service | None = None
    operators: Asgi | None = None

    async with anyio.create_task_group() as tasks:

        async def on_ready(service: Service) -> None:
            nonlocal running, operators
            running, operators = service, service.operators_app()
            service.metrics.follow_connections(connections.count)
            if prepare is not None:
                await prepare(service)
            if sockets.inner is not None:
                tasks.start_soon(_serve_ledger, service, sockets.inner, stop, is_replaced)
            freeze_startup()
            notice.publish(sockets)

        parts = ServiceParts(
            base_url=sockets.base_url,
            deliver=True,
            clock=clock,
            is_stopping=lambda: stop.is_set() and not is_replaced(),
        )
        app = App(settings, parts, extension=extension, on_ready=on_ready)
        if sockets.metrics is not None:
            pages = partial(
                serve_metrics,
                settings,
                sockets.metrics,
                lambda: None if running is None else running.metrics,
                stop,
                lambda: operators,
                is_replaced=is_replaced,
            )
            tasks.start_soon(pages)
        try:
            with hold_directory(settings), note_running(settings.data_dir, sockets.noted_url):
                await serve(app, sockets.main, settings, stop=stop, is_replaced=is_replaced, connections=connections)
        except BaseException:
            if app.failure is None:
                raise
            raise SystemExit(f"the service could not start: {app.failure}") from None
        finally:
            await tracing.finish()
        stop.set()


async def _serve_ledger(service: Service, sock: socket, stop: anyio.Event, is_replaced: Callable[[], bool]) -> None:
    """Serve the ledger API to the services that follow this ledger, whose modules are loaded only where it is on."""
    from toolserver.money.ledger.server.api import internal_app

    own = service.money.own
    assert own is not None, "a service that follows a ledger has no port for followers"
    app = internal_app(own, service.settings.ledger, service.clock)
    await serve(app, sock, service.settings, stop=stop, is_replaced=is_replaced)
