"""Implement `toolserver demo`: the simulated world and a service that share one clock, with a funded token."""

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import click

from toolserver.app import Service
from toolserver.cli.demo_settings import (
    DEMO_CREDITS,
    FILL_S,
    WORLD_FILE,
    find_token,
    fund_with,
    make_demo_settings,
    write_operator_file,
)
from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.options import listening_options
from toolserver.cli.ready_notice import ReadyNotice
from toolserver.cli.run_service import serve_until
from toolserver.cli.serving_rules import require_what_workers_share
from toolserver.cli.workers import supervise
from toolserver.cli.world import serve_upstreams
from toolserver.money.purchases.demo import chain_url, paste_sequence
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.listen import refuse_public, run_async, stop_signal
from toolserver.settings import Settings
from toolserver.world.anvil_chain import anvil_chain
from toolserver.world.anvil_node import AnvilMissing, find_anvil
from toolserver.world.state import SharedSimClock, WorldState


@click.command()
@listening_options
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated world")
@click.option("--limits", is_flag=True, help="Space free calls as a service does: one per endpoint every 30 s")
@click.option(
    "--chain",
    type=click.Choice(["simulated", "anvil"]),
    default="simulated",
    show_default=True,
    help="What Base is here",
)
@click.option("--anvil", metavar="PATH", help="The program anvil, if it is not on PATH")
@click.option("--no-wait", is_flag=True, help="Be ready at once, before the home page has its first values")
def demo(ready_json: bool, seed: int, limits: bool, no_wait: bool, chain: str, anvil: str | None, **flags: Any) -> None:
    """Serve the tools with a simulated world and a funded token: everything works offline.

    Without --data-dir, nothing is left behind on disk. With it, the next demo there goes on with the same chain, clock
    and token, and DIR/demo.env, sourced by a shell, makes every command work on the demo. Free calls are spaced only
    with --limits. With several workers the home page is filled when it is first opened. With --chain anvil, credits are
    sold on Foundry's local chain, which executes the contracts.
    """
    program = _find_program(anvil) if chain == "anvil" else None
    with TemporaryDirectory(prefix="toolserver-demo-") as own:  # demo credits are never stored beside real ones
        stays = flags["data_dir"] is not None
        flags["data_dir"] = flags["data_dir"] or Path(own)
        settings = prepare_settings(**flags)
        run_async(
            settings,
            demo_command,
            settings,
            flags,
            seed=seed,
            spaced=limits,
            ready_json=ready_json,
            fills=not no_wait,
            stays=stays,
            anvil=program,
        )


def _find_program(named: str | None) -> str:
    try:
        return find_anvil(named)
    except AnvilMissing as missing:
        raise click.ClickException(str(missing)) from None


async def demo_command(
    settings: Settings,
    flags: dict[str, Any],
    *,
    seed: int,
    ready_json: bool,
    spaced: bool = False,
    fills: bool = False,
    stays: bool = False,
    anvil: str | None = None,
    serve: Callable[..., Awaitable[None]] = serve_until,
) -> None:
    """Run the world and the service until a signal stops them. `flags` are the options of the command line.

    With `fills`, the service is ready once its home page has values. Several workers follow
    the clock of the world, and do not wait. With `stays`, world and token are kept in the data
    directory, with a file for the operator's shell. The program `anvil`, if one is given, is
    the chain. Raises SystemExit if the settings do not allow a demo.
    """
    refuse_public(settings, "the demo")
    if settings.ledger.url is not None:
        raise SystemExit("the demo has its own ledger: unset ledger.url")
    require_what_workers_share(settings)
    stop = anyio.Event()
    token = find_token(settings.data_dir) if stays else f"svc_live_{secrets.token_hex(32)}"

    state = WorldState(seed=seed, file=settings.data_dir / WORLD_FILE if stays else None)
    chain = anvil_chain(anvil, state, settings.data_dir if stays else None)

    async with chain, anyio.create_task_group() as tasks:
        if settings.workers == 1:
            tasks.start_soon(stop_signal, stop)
        port = await tasks.start(serve_upstreams, state, tool_packages(settings.tools), "127.0.0.1", 0)
        world_url = f"http://127.0.0.1:{port}"
        settings = make_demo_settings(settings, world_url, spaced=spaced)
        facts = {"world_url": world_url, "chain_url": chain_url(world_url), "token": token, "credits": DEMO_CREDITS}

        def describe_purchase(base_url: str) -> str:
            return "to buy credits on the simulated chain, paste:\n\n" + paste_sequence(base_url, world_url)

        def prepare_shell(base_url: str) -> None:
            write_operator_file(settings, base_url)

        notice = ReadyNotice(ready_json, facts, describe_purchase, prepare_shell if stays else None)
        if settings.workers > 1:
            await supervise(
                settings, flags, stop, notice, world={"world_url": world_url, "token": token, "spaced": spaced}
            )
        else:
            fund = fund_with(token)

            async def prepare(service: Service) -> None:
                await fund(service)
                if fills:
                    await service.live.fill(within_s=FILL_S)

            await serve(settings, stop, notice, prepare=prepare, clock=SharedSimClock(state.clock))
        tasks.cancel_scope.cancel()
