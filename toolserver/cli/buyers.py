"""Hold what the commands for refunds and reissues share: the ledger, the chain, and the name that buyers sign for."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolserver.cli.load_settings import explain_errors, find_ledger, settings_from

if TYPE_CHECKING:
    from toolserver.money.purchases.rpc_pool import RpcPool
    from toolserver.settings import Settings
    from toolserver.sql.group_commit import GroupCommit

T = TypeVar("T")


class Desk:
    """What a command works with. `host` appears in the texts that buyers sign."""

    def __init__(self, settings: "Settings", file: "GroupCommit") -> None:
        from toolserver.clock import SystemClock
        from toolserver.money.ledger.protocol import milliseconds
        from toolserver.money.ledger.sqlite import SqliteLedger

        self.settings, self.file, self.clock = settings, file, SystemClock()
        self.ledger = SqliteLedger(file, self.clock)
        self.now = milliseconds(self.clock)

    @property
    def host(self) -> str:
        from urllib.parse import urlsplit

        if self.settings.base_url is None:
            raise ValueError("set base_url: buyers sign for the name of the service")
        return urlsplit(self.settings.base_url).hostname or "localhost"

    async def find_hash(self, fingerprint: str) -> str:
        """Return the SHA-256 (hex) of the token with this fingerprint. Raises PaymentRequired (invalid_token)."""
        return (await self.ledger.standing_of_fingerprint(fingerprint)).payer

    @asynccontextmanager
    async def chain(self) -> AsyncIterator["RpcPool"]:
        """Yield the RPC servers of the settings. Raises ChainDown when none answers."""
        from toolserver.money.purchases.service import make_rpc_pool

        pool = make_rpc_pool(self.settings.payments, self.clock)
        try:
            await pool.check_ready()
            yield pool
        finally:
            await pool.aclose()


def at_desk(data_dir: Path | None, job: Callable[[Desk], Awaitable[T]]) -> T:
    """Run a job on the ledger of a data directory. An error ends the program with a one-sentence message."""
    import anyio

    from toolserver.sql.ledger_place import open_place

    settings = settings_from(data_dir=data_dir)
    path = find_ledger(settings.data_dir)

    async def run() -> T:
        async with open_place(path) as file:
            return await job(Desk(settings, file))

    with explain_errors():
        return anyio.run(run)


def print_facts(found: Mapping[str, Any], as_json: bool) -> None:
    """Print an object as JSON, or one line for each member that is set."""
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        if value is not None:
            click.echo(f"{name:12} {value}")


def print_list(rows: Iterable[Mapping[str, Any]], as_json: bool, nothing: str) -> None:
    """Print objects as JSON, or one line each."""
    rows = list(rows)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo("  ".join(str(value) for value in row.values() if value is not None))
    if not rows:
        click.echo(nothing)
