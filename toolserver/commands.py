"""What the command line's long-running verbs do."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskStatus

from toolserver.app import App, Service
from toolserver.billing.sqlite import SqliteLedger
from toolserver.metrics import Metrics
from toolserver.serving import address_of, announce, bound, refuse_public, serve, serve_metrics, settled, stop_signal
from toolserver.settings import Settings

if TYPE_CHECKING:
    from toolserver.world.state import WorldState

log = logging.getLogger(__name__)

DEMO_CREDITS = 500


async def serve_command(settings: Settings, *, ready_json: bool, everything: bool = False, **parts: Any) -> None:
    """`toolserver serve`: until a signal says stop."""
    if everything:
        refuse_public(settings, "--everything")
    if settings.workers > 1:
        raise SystemExit("more than one worker needs PostgreSQL and Redis: with SQLite one process owns the data")
    if settings.upstream.contact is None and settings.upstream.via is None:
        log.warning("no upstream.contact is set: some public services refuse requests without one")
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        await serve_until(settings, stop, ready_json=ready_json, everything=everything, facts={}, **parts)
        tasks.cancel_scope.cancel()


class Doors(NamedTuple):
    """The sockets we listen on, and what is said about them."""

    main: socket
    metrics: socket | None
    inner: socket | None
    base_url: str
    told: dict[str, Any]

    @classmethod
    def bound(cls, settings: Settings) -> "Doors":
        """All that the settings ask for. Raises SystemExit when one cannot be had."""
        main = bound(settings.host, settings.port)
        base_url = settings.base_url or address_of(main, settings.host)
        own, ledger = settings.metrics, settings.ledger
        metrics = bound(own.host, own.port) if own.enabled else None
        inner = None if ledger.port is None else bound(ledger.host, ledger.port)
        told = {
            "base_url": base_url,
            "mcp_url": f"{base_url}/api/mcp",
            "metrics_url": f"{address_of(metrics, own.host)}/metrics" if metrics else None,
        }
        if inner is not None:
            told["internal_url"] = address_of(inner, ledger.host)
        return cls(main, metrics, inner, base_url, told)


async def serve_until(
    settings: Settings,
    stop: anyio.Event,
    *,
    ready_json: bool,
    facts: dict[str, Any],
    everything: bool = False,
    first: Callable[[Service], Awaitable[None]] | None = None,
    hint: Callable[[str], str] | None = None,
    **parts: Any,
) -> None:
    """Bind, start, do what comes first, announce, serve, stop."""
    doors = Doors.bound(settings)
    found: list[Metrics] = []

    async with anyio.create_task_group() as tasks:

        async def on_ready(service: Service) -> None:
            found.append(service.metrics)
            if first is not None:
                await first(service)
            if doors.inner is not None:
                tasks.start_soon(_owned, service, doors.inner, stop)
            settled()
            if ready_json:
                announce(**doors.told, **facts)
            else:
                greet(doors.told | facts, hint(doors.base_url) if hint else "")

        app = App(settings, base_url=doors.base_url, everything=everything, on_ready=on_ready, **parts)
        if doors.metrics is not None:
            tasks.start_soon(serve_metrics, settings, doors.metrics, lambda: found[0] if found else None, stop)
        try:
            await serve(app, doors.main, settings, stop=stop)
        except BaseException:
            if app.failure is None:
                raise
            raise SystemExit(f"the service could not start: {app.failure}") from None
        stop.set()


async def _owned(service: Service, sock: socket, stop: anyio.Event) -> None:
    """The internal listener: those who follow our ledger."""
    from toolserver.billing.owner_api import internal_app

    assert isinstance(service.treasury.ledger, SqliteLedger)
    app = internal_app(service.treasury.ledger, service.settings.ledger, service.clock)
    await serve(app, sock, service.settings, stop=stop)


async def demo_command(settings: Settings, *, seed: int, ready_json: bool) -> None:
    """`toolserver demo`: the simulated world and the service on it, sharing one clock, with a funded token."""
    from toolserver.idempotency import fingerprint
    from toolserver.payments.demo import chain_url, demo_payments, paste_sequence
    from toolserver.world.clock import SimulatedClock
    from toolserver.world.state import WorldState

    refuse_public(settings, "the demo")
    if settings.ledger.url is not None:
        raise SystemExit("the demo keeps its own books: unset ledger.url")
    stop = anyio.Event()
    token = f"svc_live_{secrets.token_hex(32)}"

    async def fund(service: Service) -> None:
        assert isinstance(service.treasury.ledger, SqliteLedger)
        await service.treasury.ledger.mint(token, DEMO_CREDITS, cause=f"demo {fingerprint(token)}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        state = WorldState(seed=seed)
        port = await tasks.start(_world, state, "127.0.0.1", 0)
        world_url = f"http://127.0.0.1:{port}"
        upstream = settings.upstream.model_copy(update={"via": world_url})
        settings = settings.model_copy(update={"upstream": upstream, "payments": demo_payments(world_url)})
        facts = {"world_url": world_url, "chain_url": chain_url(world_url), "token": token, "credits": DEMO_CREDITS}
        clock = SimulatedClock(state.clock)

        def purchase(base_url: str) -> str:
            return "to buy credits on the simulated chain, paste:\n\n" + paste_sequence(base_url, world_url)

        await serve_until(settings, stop, ready_json=ready_json, facts=facts, first=fund, hint=purchase, clock=clock)
        tasks.cancel_scope.cancel()


_GREETING = {
    "base_url": "home page",
    "mcp_url": "MCP",
    "metrics_url": "metrics",
    "internal_url": "for followers",
    "world_url": "simulated world",
    "chain_url": "simulated chain",
    "token": "bearer token",
    "credits": "its credits",
}


def greet(told: dict[str, Any], hint: str = "") -> None:
    """Say on stdout, for a person, that calls are accepted, and where, and what to try."""
    lines = [f"  {label:17}{told[name]}" for name, label in _GREETING.items() if told.get(name) is not None]
    print("\nready; Ctrl+C stops\n\n" + "\n".join(lines) + "\n" + (f"\n{hint}" if hint else ""), flush=True)


async def world_command(*, host: str, port: int, seed: int, samples: Path | None = None) -> None:
    """`toolserver world`: the simulator alone."""
    from toolserver.world.state import WorldState

    bound(host, port).close()  # says in a sentence that the port is taken
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        used = await tasks.start(_world, WorldState(seed=seed, samples=samples), host, port)
        announce(world_url=f"http://{host}:{used}")
        await stop.wait()
        tasks.cancel_scope.cancel()


async def _world(
    state: "WorldState", host: str, port: int, *, task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED
) -> None:
    import importlib
    import pkgutil

    import tools.simulated
    from toolserver.world.model import ROUTES
    from toolserver.world.server import serve_world

    for module in pkgutil.iter_modules(tools.simulated.__path__):
        importlib.import_module(f"tools.simulated.{module.name}")
    await serve_world(state, ROUTES, host=host, port=port, task_status=task_status)
