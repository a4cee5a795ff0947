"""Implement `toolserver purchases` and `toolserver sweep-plan`: show sales to operators and plan the collection."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_data_dir, find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import data_dir_option, json_option, limit_option
from toolserver.cli.printing import print_rows
from toolserver.core.outbound import read_proxies
from toolserver.money.books.open_cases import add_waiting, list_open_cases, list_pending_payments
from toolserver.money.purchases.chain.ethereum import tx_hash_of
from toolserver.money.purchases.listing import show_purchase
from toolserver.money.purchases.matching import policy_of
from toolserver.money.purchases.quotes import ADDRESS_MARK
from toolserver.money.purchases.store import approve_transfer, read_deposit_states, read_deposits, read_purchases
from toolserver.money.purchases.sweep import find_unclaimed, sweep_plan
from toolserver.serving.shared_database import find_marks
from toolserver.settings import Settings
from toolserver.sql.ledger_place import LedgerPlace, open_place

_STATES = click.Choice(["quoted", "credited", "reorged"])


@click.command()
@data_dir_option
@click.option(
    "--state", type=_STATES, help="Only purchases in this state; reorged: paid, then undone by a reorg of the chain"
)
@limit_option
@click.option("--cases", "only_cases", is_flag=True, help="List cases that need attention, oldest first")
@click.option("--pending", "only_pending", is_flag=True, help="List signed payments (x402) that are not yet settled")
@click.option("--unclaimed", is_flag=True, help="Search the chain for money that nobody confirmed, or that waits")
@click.option("--approve", metavar="TX_HASH", help="Approve a payment that is held because it exceeds a ceiling")
@json_option
def purchases(
    data_dir: Path | None,
    state: str | None,
    limit: int,
    only_cases: bool,
    only_pending: bool,
    unclaimed: bool,
    approve: str | None,
    as_json: bool,
) -> None:
    """List purchases of credits, newest first; with --cases, --pending or --unclaimed, list open items."""
    if only_cases + only_pending + unclaimed + (state is not None) > 1:
        raise click.UsageError("--state, --cases, --pending and --unclaimed cannot be combined")
    path = find_ledger(find_data_dir(data_dir))
    with explain_errors():
        if approve is not None:
            _approve(path, approve)
            return
        if unclaimed:
            rows = _unclaimed(path, data_dir)[:limit]
        elif only_pending:
            rows = _pending(path, limit)
        else:
            rows = _cases(path, limit) if only_cases else _purchases(path, state, limit)
            if only_cases and not as_json:
                rows = [_shorten(case) for case in rows]
    nothing = "no payment is pending" if only_pending else "no purchases"
    print_rows(rows, as_json, "nothing needs attention" if only_cases else nothing)


@click.command("sweep-plan")
@data_dir_option
@click.option("--to", required=True, metavar="ADDRESS", help="Address to move all deposits to")
@click.option(
    "--least-usd", type=click.IntRange(1), default=1, show_default=True, help="Skip addresses that hold less than this"
)
def print_sweep_plan(data_dir: Path | None, to: str, least_usd: int) -> None:
    """Print what must be signed offline to collect the deposits: EIP-3009 authorisations, as JSON.

    This moves nothing and needs no private key. Sign each `typed_data` with the key at `path` below
    m/44'/60'/account'; anyone may then submit the signed authorisations to the token contract.
    `toolserver sweep` does all of this, and weighs cost against yield.
    """
    settings = settings_from(data_dir=data_dir)
    path = find_ledger(settings.data_dir)
    with explain_errors():
        plan = anyio.run(_plan, settings, path, to, least_usd)
    click.echo(json.dumps(plan, indent=2))


async def _plan(settings: Settings, path: LedgerPlace, to: str, least_usd: int) -> dict[str, Any]:
    deposits = read_deposits(path)
    return await sweep_plan(
        settings.payments,
        addresses=deposits,
        clock=find_clock(settings),
        to=to,
        least_usd=least_usd,
        proxies=read_proxies(settings.upstream.proxy_address),
    )


def _purchases(path: LedgerPlace, state: str | None, limit: int) -> list[dict[str, Any]]:
    return [show_purchase(purchase) for purchase in read_purchases(path, state, limit)]


def _cases(path: LedgerPlace, limit: int) -> list[dict[str, Any]]:
    return list_open_cases(path, int(find_clock(settings_from()).time() * 1000), limit)


def _shorten(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case as one line shows it: of what is on the chain the state."""
    return case | {"on_chain": ", ".join(f"{each['state']} on the chain" for each in case["on_chain"]) or None}


def _approve(path: LedgerPlace, text: str) -> None:
    """Approve a held payment. Its buyer must confirm it once more."""
    tx_hash = tx_hash_of(text)
    if tx_hash is None:
        raise click.UsageError("a transaction hash has 64 hexadecimal digits")

    async def run() -> bool:
        async with open_place(path) as file:
            return await approve_transfer(file, tx_hash, int(find_clock(settings_from()).time() * 1000))

    if not anyio.run(run):
        raise click.ClickException("no payment from this transaction is on hold")
    click.echo("approved: the buyer receives the credits when they confirm the purchase again")


def _unclaimed(path: LedgerPlace, data_dir: Path | None) -> list[dict[str, Any]]:
    states = read_deposit_states(path)
    quoted = [index for index, state in states if state == "quoted"]
    used = [index for index, state in states if state != "quoted"]
    settings = settings_from(data_dir=data_dir)
    issued = find_marks(settings, patient=True).read(ADDRESS_MARK) or 0
    find = partial(
        find_unclaimed,
        settings.payments,
        quoted=quoted,
        used=used,
        issued=issued,
        clock=find_clock(settings),
        proxies=read_proxies(settings.upstream.proxy_address),
    )
    policy, servers = policy_of(settings.payments), len(settings.payments.rpc_urls)
    return add_waiting(path, anyio.run(find), policy, servers)


def _pending(path: LedgerPlace, limit: int) -> list[dict[str, Any]]:
    return list_pending_payments(path, int(find_clock(settings_from()).time() * 1000), limit)
