"""Implement `toolserver world`: serve the simulated upstreams, or a recording, without a service."""

from collections.abc import Callable, Iterable
from pathlib import Path

import anyio
import click
from anyio.abc import TaskStatus

from toolserver.cli.load_settings import settings_from
from toolserver.core.logging import set_up
from toolserver.core.recorded_exchange import NoRecording
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.listen import announce, bind_socket, stop_signal
from toolserver.settings import Settings, is_loopback
from toolserver.world.model import ROUTES, Routes
from toolserver.world.providers import load_providers
from toolserver.world.recorded_routes import RecordedRoutes
from toolserver.world.server import serve_world
from toolserver.world.state import SimClock, WorldState


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on")
@click.option("--port", type=click.IntRange(0, 65535), default=9999, show_default=True, help="0 picks a free port")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated world")
@click.option("--samples", type=click.Path(path_type=Path, exists=True), help="Folder of recorded bodies to replay")
@click.option(
    "--replay",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Serve a recording of `toolserver doctor --live --record DIR` instead, with the clock stopped at its time",
)
def world(host: str, port: int, seed: int, samples: Path | None, replay: Path | None) -> None:
    """Run the simulated world alone. Point a service at it with TOOLSERVER_UPSTREAM__VIA."""
    if not is_loopback(host):
        raise click.ClickException("the simulated world listens on loopback addresses only")
    set_up("info", "auto")
    settings = settings_from()
    anyio.run(lambda: world_command(settings, host=host, port=port, seed=seed, samples=samples, replay=replay))


async def world_command(
    settings: Settings,
    *,
    host: str,
    port: int,
    seed: int,
    samples: Path | None = None,
    replay: Path | None = None,
    publish: Callable[..., None] = announce,
) -> None:
    """Run `toolserver world` until a signal stops it. Raises SystemExit if the recording is unreadable."""
    bind_socket(host, port).close()  # so that a port in use is reported in one sentence
    recorded = None if replay is None else _read_recording(replay)
    state = WorldState(seed=seed, samples=samples)
    if recorded is not None:
        state.clock = SimClock(recorded.recorded_at, frozen=True)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        bound = await tasks.start(serve_upstreams, state, tool_packages(settings.tools), host, port, recorded)
        publish(world_url=f"http://{host}:{bound}")
        await stop.wait()
        tasks.cancel_scope.cancel()


def _read_recording(folder: Path) -> RecordedRoutes:
    try:
        return RecordedRoutes(folder)
    except NoRecording as error:
        raise SystemExit(str(error)) from None


async def serve_upstreams(
    state: WorldState,
    packages: Iterable[str],
    host: str,
    port: int,
    routes: Routes | None = None,
    *,
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve these routes, or those of the packages' simulated providers. The task starts with the bound port."""
    if routes is None:
        load_providers(packages)
    await serve_world(state, routes or state.chain.serve(ROUTES), host=host, port=port, task_status=task_status)
