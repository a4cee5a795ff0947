"""Hold what the commands for refunds and reissues share: the ledger, the chain, and the name that buyers sign for."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import anyio

from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.clock import milliseconds
from toolserver.core.outbound import read_proxies
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.purchases.chain.rpc_pool import RpcPool, make_rpc_pool
from toolserver.settings import Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import open_place

T = TypeVar("T")


class Desk:
    """What a command works with. `host` appears in the texts that buyers sign."""

    def __init__(self, settings: Settings, file: GroupCommit) -> None:
        self.settings, self.file, self.clock = settings, file, find_clock(settings)
        self.ledger = SqlLedger(file, self.clock)
        self.now = milliseconds(self.clock)

    @property
    def host(self) -> str:
        if self.settings.base_url is None:
            raise ValueError("set base_url: buyers sign for the name of the service")
        return urlsplit(self.settings.base_url).hostname or "localhost"

    async def find_hash(self, fingerprint: str) -> str:
        """Return the SHA-256 (hex) of the token with this fingerprint. Raises PaymentRequired (invalid_token)."""
        return (await self.ledger.standing_of_fingerprint(fingerprint)).payer

    @asynccontextmanager
    async def chain(self) -> AsyncIterator[RpcPool]:
        """Yield the RPC servers of the settings. Raises ChainDown when none answers."""
        pool = make_rpc_pool(self.settings.payments, self.clock, read_proxies(self.settings.upstream.proxy_address))
        try:
            await pool.check_ready()
            yield pool
        finally:
            await pool.aclose()


def at_desk(data_dir: Path | None, job: Callable[[Desk], Awaitable[T]]) -> T:
    """Run a job on the ledger of a data directory. An error ends the program with a one-sentence message."""
    settings = settings_from(data_dir=data_dir)
    path = find_ledger(settings.data_dir)

    async def run() -> T:
        async with open_place(path) as file:
            return await job(Desk(settings, file))

    with explain_errors():
        return anyio.run(run)
