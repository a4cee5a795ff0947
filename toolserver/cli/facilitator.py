"""Implement `toolserver facilitator`: run the official x402 facilitator on this machine instead of a hosted one."""

import gc
from pathlib import Path
from socket import socket

import anyio
import click

from toolserver.core.logging import set_up
from toolserver.money.purchases.offline_key import KeyRefused
from toolserver.money.x402 import local_facilitator
from toolserver.serving.connections import Asgi
from toolserver.serving.listen import address_of, announce, bind_socket, serve, stop_signal
from toolserver.settings import ServingSettings, Settings


@click.command()
@click.option("--rpc", required=True, help="URL of a JSON-RPC server of Base (chain 8453)")
@click.option(
    "--key-file",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the private key that pays the fees, readable by its owner only",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8402,
    show_default=True,
    help="Port to listen on; 0 picks a free one",
)
def facilitator(rpc: str, key_file: Path, port: int) -> None:
    """Verify and settle x402 payments on this machine with the official facilitator (extra: x402).

    Point a service at it with TOOLSERVER_X402__FACILITATOR_URL. The facilitator listens on loopback only.
    """
    gc.enable()
    try:
        official = local_facilitator.official(rpc, local_facilitator.key_from(key_file))
    except (KeyRefused, local_facilitator.NotInstalled) as refused:
        raise click.ClickException(str(refused)) from None
    set_up("info", "auto")
    anyio.run(run_until_signal, local_facilitator.LocalFacilitator(official), bind_socket("127.0.0.1", port))


async def run_until_signal(app: Asgi, sock: socket) -> None:
    """Announce the address of a socket, and serve an app on it until a signal says stop."""
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_signal, stop)
        announce(facilitator_url=address_of(sock, "127.0.0.1"))
        await serve(app, sock, Settings(serving=ServingSettings(drain_s=0)), stop=stop)  # no balancer stands before it
        tasks.cancel_scope.cancel()
