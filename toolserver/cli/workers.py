"""Run `serve` and `demo` with several workers: one process binds the sockets and supervises those that serve.

The supervisor shares only its sockets and a pipe with a worker. Each worker reads the settings
itself, so that renewed workers use the current `toolserver.toml`. Imports little: the
supervisor serves nothing itself.
"""

import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from toolserver.cli.ready_notice import ReadyNotice
from toolserver.cli.serving_rules import check_before_serving
from toolserver.serving.data_directory import note_running
from toolserver.serving.listen import stop_signal
from toolserver.serving.listeners import Listeners
from toolserver.serving.supervisor import WORKER_TIMES, Supervisor, WorkerFailed, WorkerProcess
from toolserver.settings import Settings

log = logging.getLogger(__name__)

MODULE = "toolserver.cli.worker"


def make_worker_settings(settings: Settings, number: int) -> Settings:
    """Derive the settings of one worker from those of the whole service."""
    scaling = settings.scaling
    shared = {
        "instances": max(scaling.instances, settings.workers),
        "keys_dir": scaling.keys_dir or settings.data_dir / "keys",
    }
    folder = settings.data_dir / f"worker-{number}"
    return settings.model_copy(update={"data_dir": folder, "scaling": scaling.model_copy(update=shared)})


async def workers_command(settings: Settings, flags: Mapping[str, Any], *, ready_json: bool) -> None:
    """Run `toolserver serve` with several workers until a signal stops it."""
    check_before_serving(settings)
    await supervise(settings, flags, anyio.Event(), ReadyNotice(ready_json))


async def supervise(
    settings: Settings,
    flags: Mapping[str, Any],
    stop: anyio.Event,
    notice: ReadyNotice,
    *,
    world: Mapping[str, Any] | None = None,
) -> None:
    """Run the workers of a service until `stop` is set. SIGHUP renews them one after another.

    `flags` are the options of the command line, which each worker reads again. The notice is
    published when all workers are ready. `world` has the `world_url` and `token` of a demo,
    and whether it is `spaced`. Raises SystemExit if the workers cannot be started or kept
    running.
    """
    listeners = Listeners.open_for_workers(settings, settings.workers)
    options = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}

    async def start(number: int) -> WorkerProcess:
        files = listeners[number].files
        orders = {"number": number, "flags": options, "files": files, "world": world}
        numbers = [file for file in files.values() if file is not None]
        return await WorkerProcess.start(number, [sys.executable, "-m", MODULE], orders, numbers)

    def on_ready(ready_lines: list[dict[str, Any]]) -> None:
        log.info("every worker is ready", extra={"pids": [line["pid"] for line in ready_lines]})
        notice.publish(listeners[0])

    supervisor = Supervisor(settings.workers, start, WORKER_TIMES.allow_drain(settings.serving.drain_s))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop, supervisor.kill_all)
        await tasks.start(_renew_on_signal, supervisor)
        with note_running(settings.data_dir, listeners[0].addresses["metrics_url"]):
            try:
                await supervisor.run(stop, on_ready)
            except WorkerFailed as error:
                raise SystemExit(str(error)) from None
        tasks.cancel_scope.cancel()


async def _renew_on_signal(
    supervisor: Supervisor, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Renew the workers at each SIGHUP. A SIGHUP during a renewal renews them once more."""
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            await supervisor.renew()
