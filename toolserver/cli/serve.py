"""Implement the long-running commands `serve`, `demo` and `world`."""

import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus

from toolserver.app import App, Service, ServiceParts
from toolserver.cli.demo_settings import DEMO_CREDITS, fund_with, make_demo_settings
from toolserver.cli.greeting import greet
from toolserver.cli.serving_rules import check_before_serving, require_what_workers_share
from toolserver.clock import Clock
from toolserver.core.metrics import Metrics
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.directory_lock import hold_directory
from toolserver.serving.listen import (
    announce,
    bind_socket,
    freeze_startup,
    refuse_public,
    serve,
    serve_metrics,
    stop_signal,
)
from toolserver.serving.listeners import Listeners
from toolserver.serving.request_gate import Asgi, never
from toolserver.serving.running_note import note_running
from toolserver.settings import Settings

if TYPE_CHECKING:
    from toolserver.world.model import Routes
    from toolserver.world.recorded_routes import RecordedRoutes
    from toolserver.world.state import WorldState


async def serve_command(settings: Settings, *, ready_json: bool, everything: bool = False) -> None:
    """Run `toolserver serve` in this process until a signal stops it. For several workers, see `workers_command`."""
    check_before_serving(settings, everything=everything)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        await serve_until(settings, stop, ready_json=ready_json, everything=everything, facts={})
        tasks.cancel_scope.cancel()


async def serve_until(
    settings: Settings,
    stop: anyio.Event,
    *,
    ready_json: bool,
    facts: dict[str, Any],
    everything: bool = False,
    first: Callable[[Service], Awaitable[None]] | None = None,
    hint: Callable[[str], str] | None = None,
    clock: Clock | None = None,
    listeners: Listeners | None = None,
    is_replaced: Callable[[], bool] = never,
) -> None:
    """Bind the sockets, start the service and serve until `stop` is set.

    `first` runs before the service is announced. `facts` are added to the ready line; `hint` writes from the base URL
    what a person can try. `listeners` are already bound if another process supervises this one. `is_replaced` says,
    once `stop` is set, whether another process continues to serve on the same sockets.
    """
    listeners, found = listeners or Listeners.open(settings), list[tuple[Metrics, Asgi]]()

    async with anyio.create_task_group() as tasks:

        async def on_ready(service: Service) -> None:
            found.append((service.metrics, service.operators_app()))
            if first is not None:
                await first(service)
            if listeners.inner is not None:
                tasks.start_soon(_serve_ledger, service, listeners.inner, stop, is_replaced)
            freeze_startup()
            _say_ready(listeners, facts, ready_json, hint)

        given: dict[str, Any] = {"clock": clock, "is_stopping": lambda: stop.is_set() and not is_replaced()}
        parts = ServiceParts(base_url=listeners.base_url, deliver=True, **given)
        app = App(settings, parts, everything=everything, on_ready=on_ready)
        if listeners.metrics is not None:
            tasks.start_soon(_serve_operators, settings, listeners.metrics, found, stop, is_replaced)
        try:
            with hold_directory(settings), note_running(settings.data_dir, listeners.noted_url):
                await serve(app, listeners.main, settings, stop=stop, is_replaced=is_replaced)
        except BaseException:
            if app.failure is None:
                raise
            raise SystemExit(f"the service could not start: {app.failure}") from None
        stop.set()


def _say_ready(
    listeners: Listeners, facts: dict[str, Any], ready_json: bool, hint: Callable[[str], str] | None
) -> None:
    """Print the ready line as JSON, or a greeting for a person."""
    if ready_json:
        announce(**listeners.addresses, **facts)
    else:
        greet(listeners.for_people | facts, hint)


async def _serve_operators(
    settings: Settings,
    sock: socket,
    found: list[tuple[Metrics, Asgi]],
    stop: anyio.Event,
    is_replaced: Callable[[], bool],
) -> None:
    """Serve the metrics and the operators' page of the service, which is in `found` once it runs."""
    metrics, pages = lambda: found[0][0] if found else None, lambda: found[0][1] if found else None
    await serve_metrics(settings, sock, metrics, stop, pages, is_replaced=is_replaced)


async def _serve_ledger(service: Service, sock: socket, stop: anyio.Event, is_replaced: Callable[[], bool]) -> None:
    """Serve the ledger API to the sister services that follow this ledger."""
    from toolserver.money.ledger.server.api import internal_app

    app = internal_app(service.money.own, service.settings.ledger, service.clock)
    await serve(app, sock, service.settings, stop=stop, is_replaced=is_replaced)


async def demo_command(settings: Settings, flags: dict[str, Any], *, seed: int, ready_json: bool) -> None:
    """Run `toolserver demo`: the simulated world and a service that share one clock, with a funded token.

    Several workers follow the clock of the world. `flags` are the flags of the command line.
    """
    from toolserver.money.purchases.demo import chain_url, paste_sequence
    from toolserver.world.clock import SharedSimClock
    from toolserver.world.state import WorldState

    refuse_public(settings, "the demo")
    if settings.ledger.url is not None:
        raise SystemExit("the demo has its own ledger: unset ledger.url")
    require_what_workers_share(settings)
    stop = anyio.Event()
    token = f"svc_live_{secrets.token_hex(32)}"

    async with anyio.create_task_group() as tasks:
        if settings.workers == 1:
            tasks.start_soon(stop_signal, stop)
        state = WorldState(seed=seed)
        port = await tasks.start(_serve_world, state, tool_packages(settings.tools), "127.0.0.1", 0)
        world_url = f"http://127.0.0.1:{port}"
        settings = make_demo_settings(settings, world_url)
        facts = {"world_url": world_url, "chain_url": chain_url(world_url), "token": token, "credits": DEMO_CREDITS}

        def purchase(base_url: str) -> str:
            return "to buy credits on the simulated chain, paste:\n\n" + paste_sequence(base_url, world_url)

        if settings.workers > 1:
            from toolserver.cli.workers import supervise

            hello = None if ready_json else partial(greet, hint=purchase)
            world = {"world_url": world_url, "token": token}
            await supervise(settings, flags, stop, hello=hello, facts=facts, world=world)
        else:
            given: dict[str, Any] = {"facts": facts, "first": fund_with(token), "hint": purchase}
            await serve_until(settings, stop, ready_json=ready_json, clock=SharedSimClock(state.clock), **given)
        tasks.cancel_scope.cancel()


async def world_command(
    settings: Settings, *, host: str, port: int, seed: int, samples: Path | None = None, replay: Path | None = None
) -> None:
    """Run `toolserver world`: the simulated world alone, or a recording. Raises SystemExit if it is unreadable."""
    from toolserver.world.clock import SimClock
    from toolserver.world.state import WorldState

    bind_socket(host, port).close()  # so that a port in use is reported in one sentence
    routes: Routes | None = None
    state = WorldState(seed=seed, samples=samples)
    if replay is not None:
        routes = recorded = _read_recording(replay)
        state.clock = SimClock(recorded.recorded_at, frozen=True)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        used = await tasks.start(_serve_world, state, tool_packages(settings.tools), host, port, routes)
        announce(world_url=f"http://{host}:{used}")
        await stop.wait()
        tasks.cancel_scope.cancel()


def _read_recording(folder: Path) -> "RecordedRoutes":
    from toolserver.core.recorded_exchange import NoRecording
    from toolserver.world.recorded_routes import RecordedRoutes

    try:
        return RecordedRoutes(folder)
    except NoRecording as error:
        raise SystemExit(str(error)) from None


async def _serve_world(
    state: "WorldState",
    packages: Iterable[str],
    host: str,
    port: int,
    routes: "Routes | None" = None,
    *,
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve these routes, or the routes of the packages' simulated providers."""
    from toolserver.world.model import ROUTES
    from toolserver.world.providers import load_providers
    from toolserver.world.server import serve_world

    if routes is None:
        load_providers(packages)
    await serve_world(state, routes or ROUTES, host=host, port=port, task_status=task_status)
