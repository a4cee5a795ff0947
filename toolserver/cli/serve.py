"""The long-running verbs `serve`, `demo` and `world`."""

import logging
import secrets
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskStatus

from toolserver.app import App, Service, ServiceParts
from toolserver.clock import Clock
from toolserver.core.metrics import Metrics
from toolserver.registry.licence_table import write_plain_table
from toolserver.registry.tool_packages import tool_packages
from toolserver.server.listen import (
    address_of,
    announce,
    bind_socket,
    freeze_startup,
    refuse_public,
    serve,
    serve_metrics,
    stop_signal,
)
from toolserver.server.packaged_texts import read_licence_table
from toolserver.server.request_gate import Asgi
from toolserver.server.running_note import note_running
from toolserver.settings import Settings, SourceSettings, WebhookSettings, is_loopback

if TYPE_CHECKING:
    from toolserver.world.model import Routes
    from toolserver.world.recorded_routes import RecordedRoutes
    from toolserver.world.state import WorldState

log = logging.getLogger(__name__)

DEMO_CREDITS = 500


async def serve_command(settings: Settings, *, ready_json: bool, everything: bool = False) -> None:
    """Run `toolserver serve` until a signal stops it."""
    if everything:
        refuse_public(settings, "--everything")
    require_licence_decision(settings)
    if settings.workers > 1:
        raise SystemExit("more than one worker needs PostgreSQL and Redis: with SQLite one process owns the data")
    if settings.upstream.contact is None and settings.upstream.via is None:
        log.warning("no upstream.contact is set: some public services refuse requests without one")
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        await serve_until(settings, stop, ready_json=ready_json, everything=everything, facts={})
        tasks.cancel_scope.cancel()


def require_licence_decision(settings: Settings) -> None:
    """Raises SystemExit with status 2, and prints what each policy leaves, where credits are sold without a decision.

    Selling answers passes the data of others on, for money. Which terms are accepted is not decided by a default.
    """
    sells = settings.payments.enabled or settings.x402.enabled
    if not sells or "licence_policy" in settings.sources.model_fields_set:
        return
    print(
        "payments are on, and sources.licence_policy is not set: decide which sources may be sold on.\n\n"
        f"{write_plain_table(read_licence_table())}\n\n"
        "Set TOOLSERVER_SOURCES__LICENCE_POLICY, or licence_policy under [sources] in toolserver.toml.",
        file=sys.stderr,
    )
    raise SystemExit(2)


class Listeners(NamedTuple):
    """The sockets that a service listens on, and their addresses by the names that the ready line gives them."""

    main: socket
    metrics: socket | None
    inner: socket | None
    base_url: str
    addresses: dict[str, Any]
    operators: str | None  # the address of the operators' page

    @property
    def for_people(self) -> dict[str, Any]:
        """The addresses that people see: those of the ready line, and that of the operators' page."""
        return self.addresses | {"operators_url": self.operators}

    @classmethod
    def open(cls, settings: Settings) -> "Listeners":
        """Bind every socket that the settings ask for. Raises SystemExit when one of them cannot be bound."""
        main = bind_socket(settings.host, settings.port)
        base_url = settings.base_url or address_of(main, settings.host)
        own, ledger = settings.metrics, settings.ledger
        metrics = bind_socket(own.host, own.port) if own.enabled else None
        inner = None if ledger.port is None else bind_socket(ledger.host, ledger.port)
        addresses = {
            "base_url": base_url,
            "mcp_url": f"{base_url}/api/mcp",
            "metrics_url": f"{address_of(metrics, own.host)}/metrics" if metrics else None,
        }
        if inner is not None:
            addresses["internal_url"] = address_of(inner, ledger.host)
        operators = f"{address_of(metrics, own.host)}/" if metrics and is_loopback(own.host) else None
        return cls(main, metrics, inner, base_url, addresses, operators)


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
) -> None:
    """Bind the sockets, start the service and serve until `stop` is set.

    `first` runs before the service is announced. `facts` are added to the ready line; `hint` writes what a person can
    try, from the base URL.
    """
    listeners = Listeners.open(settings)
    found: list[tuple[Metrics, Asgi]] = []

    async with anyio.create_task_group() as tasks:

        async def on_ready(service: Service) -> None:
            found.append((service.metrics, service.operators_app()))
            if first is not None:
                await first(service)
            if listeners.inner is not None:
                tasks.start_soon(_serve_ledger, service, listeners.inner, stop)
            freeze_startup()
            if ready_json:
                announce(**listeners.addresses, **facts)
            else:
                greet(listeners.for_people | facts, hint(listeners.base_url) if hint else "")

        parts = ServiceParts(base_url=listeners.base_url, clock=clock, deliver=True, is_stopping=stop.is_set)
        app = App(settings, parts, everything=everything, on_ready=on_ready)
        if listeners.metrics is not None:
            tasks.start_soon(_serve_operators, settings, listeners.metrics, found, stop)
        try:
            with note_running(settings.data_dir, listeners.addresses["metrics_url"]):
                await serve(app, listeners.main, settings, stop=stop)
        except BaseException:
            if app.failure is None:
                raise
            raise SystemExit(f"the service could not start: {app.failure}") from None
        stop.set()


async def _serve_operators(
    settings: Settings, sock: socket, found: list[tuple[Metrics, Asgi]], stop: anyio.Event
) -> None:
    """Serve the metrics and the operators' page of the service, which `found` holds once it runs."""
    await serve_metrics(
        settings, sock, lambda: found[0][0] if found else None, stop, lambda: found[0][1] if found else None
    )


async def _serve_ledger(service: Service, sock: socket, stop: anyio.Event) -> None:
    """Serve the ledger API to the sister services that follow our ledger."""
    from toolserver.ledger.server.api import internal_app

    app = internal_app(service.money.own, service.settings.ledger, service.clock)
    await serve(app, sock, service.settings, stop=stop)


async def demo_command(settings: Settings, *, seed: int, ready_json: bool) -> None:
    """Run `toolserver demo`: the simulated world and a service on it that share one clock, with a funded token."""
    from toolserver.calls.idempotency import fingerprint
    from toolserver.purchases.demo import chain_url, demo_payments, paste_sequence
    from toolserver.world.clock import SharedSimClock
    from toolserver.world.state import WorldState

    refuse_public(settings, "the demo")
    if settings.ledger.url is not None:
        raise SystemExit("the demo has a ledger of its own: unset ledger.url")
    stop = anyio.Event()
    token = f"svc_live_{secrets.token_hex(32)}"

    async def fund(service: Service) -> None:
        await service.money.own.mint(token, DEMO_CREDITS, cause=f"demo {fingerprint(token)}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        state = WorldState(seed=seed)
        port = await tasks.start(_serve_world, state, tool_packages(settings.tools), "127.0.0.1", 0)
        world_url = f"http://127.0.0.1:{port}"
        upstream = settings.upstream.model_copy(update={"via": world_url})
        changed = {"upstream": upstream, "payments": demo_payments(world_url), "webhooks": _demo_webhooks(settings)}
        settings = settings.model_copy(update=changed | {"sources": _demo_sources(settings)})
        facts = {"world_url": world_url, "chain_url": chain_url(world_url), "token": token, "credits": DEMO_CREDITS}
        clock = SharedSimClock(state.clock)

        def purchase(base_url: str) -> str:
            return "to buy credits on the simulated chain, paste:\n\n" + paste_sequence(base_url, world_url)

        await serve_until(settings, stop, ready_json=ready_json, facts=facts, first=fund, hint=purchase, clock=clock)
        tasks.cancel_scope.cancel()


def _demo_webhooks(settings: Settings) -> WebhookSettings:
    """The demo delivers to receivers on this machine unless it was told not to."""
    if "allow_loopback" in settings.webhooks.model_fields_set:
        return settings.webhooks
    return settings.webhooks.model_copy(update={"allow_loopback": True})


def _demo_sources(settings: Settings) -> SourceSettings:
    """Nothing real is sold by the demo, so it uses every source unless it was told not to."""
    policy = settings.sources.licence_policy
    return settings.sources.model_copy(update={"licence_policy": policy})


_GREETING = {
    "base_url": "home page",
    "mcp_url": "MCP",
    "operators_url": "for operators",
    "metrics_url": "metrics",
    "internal_url": "ledger API",
    "world_url": "simulated world",
    "chain_url": "simulated chain",
    "token": "bearer token",
    "credits": "its credits",
}


def greet(facts: dict[str, Any], hint: str = "") -> None:
    """Print for a person that calls are accepted, at which addresses, and what to try."""
    lines = [f"  {label:17}{facts[name]}" for name, label in _GREETING.items() if facts.get(name) is not None]
    print("\nready; Ctrl+C stops\n\n" + "\n".join(lines) + "\n" + (f"\n{hint}" if hint else ""), flush=True)


async def world_command(
    settings: Settings, *, host: str, port: int, seed: int, samples: Path | None = None, replay: Path | None = None
) -> None:
    """Run `toolserver world`: the simulated world alone, or a recording. Raises SystemExit when it cannot be read."""
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
    """Serve these routes, or those of the packages' simulated providers."""
    from toolserver.world.model import ROUTES
    from toolserver.world.providers import load_providers
    from toolserver.world.server import serve_world

    if routes is None:
        load_providers(packages)
    await serve_world(state, routes or ROUTES, host=host, port=port, task_status=task_status)
