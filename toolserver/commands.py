"""What the command line's long-running verbs do."""

import logging
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus

from toolserver.app import App, Service
from toolserver.billing.ledger import MemoryLedger
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


async def serve_until(
    settings: Settings,
    stop: anyio.Event,
    *,
    ready_json: bool,
    facts: dict[str, Any],
    everything: bool = False,
    **parts: Any,
) -> None:
    """Bind, start, announce, serve, stop."""
    sock = bound(settings.host, settings.port)
    base_url = settings.base_url or address_of(sock, settings.host)
    metrics_sock = bound(settings.metrics.host, settings.metrics.port) if settings.metrics.enabled else None
    metrics_url = f"{address_of(metrics_sock, settings.metrics.host)}/metrics" if metrics_sock else None
    found: list[Metrics] = []

    async def on_ready(service: Service) -> None:
        found.append(service.metrics)
        settled()
        told = {"base_url": base_url, "mcp_url": f"{base_url}/api/mcp", "metrics_url": metrics_url, **facts}
        if ready_json:
            announce(**told)
        else:
            greet(told)

    app = App(settings, base_url=base_url, everything=everything, on_ready=on_ready, **parts)
    async with anyio.create_task_group() as tasks:
        if metrics_sock is not None:
            tasks.start_soon(serve_metrics, settings, metrics_sock, lambda: found[0] if found else None, stop)
        try:
            await serve(app, sock, settings, stop=stop)
        except BaseException:
            if app.failure is None:
                raise
            raise SystemExit(f"the service could not start: {app.failure}") from None
        stop.set()


async def demo_command(settings: Settings, *, seed: int, ready_json: bool) -> None:
    """`toolserver demo`: the simulated world and the service on it, sharing one clock."""
    from toolserver.world.clock import SimulatedClock
    from toolserver.world.state import WorldState

    refuse_public(settings, "the demo")
    stop = anyio.Event()
    token = f"svc_live_{secrets.token_hex(32)}"
    ledger = MemoryLedger()
    ledger.fund(token, DEMO_CREDITS)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        state = WorldState(seed=seed)
        port = await tasks.start(_world, state, "127.0.0.1", 0)
        world_url = f"http://127.0.0.1:{port}"
        upstream = settings.upstream.model_copy(update={"via": world_url})
        settings = settings.model_copy(update={"upstream": upstream})
        facts = {"world_url": world_url, "chain_url": None, "token": token, "credits": DEMO_CREDITS}
        await serve_until(
            settings, stop, ready_json=ready_json, facts=facts, clock=SimulatedClock(state.clock), ledger=ledger
        )
        tasks.cancel_scope.cancel()


_GREETING = {
    "base_url": "home page",
    "mcp_url": "MCP",
    "metrics_url": "metrics",
    "world_url": "simulated world",
    "chain_url": "simulated chain",
    "token": "bearer token",
    "credits": "its credits",
}


def greet(told: dict[str, Any]) -> None:
    """Say on stdout, for a person, that calls are accepted, and where."""
    lines = [f"  {label:17}{told[name]}" for name, label in _GREETING.items() if told.get(name) is not None]
    print("\nready; Ctrl+C stops\n\n" + "\n".join(lines) + "\n", flush=True)


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
