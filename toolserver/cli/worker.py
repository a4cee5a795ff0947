"""Run one worker of several (`python -m toolserver.cli.worker`). Only their supervisor starts it (`cli.workers`)."""

import functools
import gc
import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import click

from toolserver.app import Service
from toolserver.cli.demo_settings import fund_with, make_demo_settings
from toolserver.cli.error_lines import end_in_one_line
from toolserver.cli.load_settings import make_data_dir, prepare_settings
from toolserver.cli.ready_notice import ReadyNotice
from toolserver.cli.run_service import serve_until
from toolserver.cli.workers import make_worker_settings
from toolserver.serving.listen import run_async, stop_signal
from toolserver.serving.listeners import Listeners
from toolserver.serving.supervisor import LINE_BYTES, REPLACED
from toolserver.settings import Settings
from toolserver.webhooks.signing import open_key

log = logging.getLogger(__name__)

ORDERS = 0  # the file descriptor of standard input


class Orders:
    """What the supervisor writes after the first line."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._is_replaced = False

    def is_replaced(self) -> bool:
        """Return True if another process serves on the same sockets, so that nothing needs to be refused."""
        return self._is_replaced

    async def follow(self, stop: anyio.Event) -> None:
        """Set the event when this worker must end. If the whole service ends, it no longer counts as replaced."""
        while True:
            await anyio.wait_readable(self._file)
            order = os.read(self._file, LINE_BYTES)
            self._is_replaced = order.endswith(REPLACED)
            stop.set()
            if not self._is_replaced:
                return


def read_orders(file: int) -> dict[str, Any]:
    """Read the first line of the pipe and not a byte more. Raises ValueError if it is not a JSON object."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(file, 1)):
        line += byte
    orders = json.loads(line)
    if not isinstance(orders, dict):
        raise ValueError("the orders are not a JSON object")
    return orders


async def work(
    settings: Settings,
    orders: dict[str, Any],
    file: int = ORDERS,
    *,
    serve: Callable[..., Awaitable[None]] = serve_until,
) -> None:
    """Serve on the sockets that the orders name until the supervisor or a signal stops this worker."""
    stop, later_orders, world = anyio.Event(), Orders(file), orders["world"]
    listeners = Listeners.adopt(settings, orders["files"])

    async def prepare(service: Service) -> None:
        open_key(settings.data_dir, settings.scaling.keys_dir)  # create it now: two workers would create two keys
        if world:
            await fund_with(world["token"])(service)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        tasks.start_soon(later_orders.follow, stop)
        await serve(
            settings,
            stop,
            ReadyNotice(as_json=True),
            prepare=prepare,
            listeners=listeners,
            is_replaced=later_orders.is_replaced,
        )
        tasks.cancel_scope.cancel()


def name_worker(number: int) -> None:
    """Add this worker's number to every log line of this process."""
    make = logging.getLogRecordFactory()

    def make_record(*args: Any, **named: Any) -> logging.LogRecord:
        record = make(*args, **named)
        record.worker = number
        return record

    logging.setLogRecordFactory(make_record)


def main() -> None:
    """Read the orders and serve."""
    gc.disable()  # until the service has started, as in `cli.main`
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # meant for the supervisor; a terminal sends it to all processes
    try:
        with end_in_one_line():
            _obey(read_orders(ORDERS))
    except click.ClickException as refused:
        raise SystemExit(refused.message) from None


def _obey(orders: dict[str, Any]) -> None:
    settings = prepare_settings(**orders["flags"])
    name_worker(orders["number"])
    if orders["world"]:
        settings = make_demo_settings(settings, orders["world"]["world_url"], spaced=orders["world"]["spaced"])
    settings = make_worker_settings(settings, orders["number"])
    make_data_dir(settings.data_dir)
    run_async(settings, functools.partial(work, settings, orders))


if __name__ == "__main__":
    main()
