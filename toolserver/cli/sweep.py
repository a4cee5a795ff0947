"""Implement `toolserver sweep …`: collect deposits in three steps. The step with the keys needs no network."""

import json
import sys
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import click
from eth_keys.datatypes import PrivateKey

from toolserver.cli.command_clock import find_clock
from toolserver.cli.documents import (
    document_argument,
    find_rpc,
    key_options,
    load_document,
    read_key,
    read_signature,
    sign_document,
)
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import data_dir_option, json_option
from toolserver.cli.printing import print_rows
from toolserver.clock import Clock
from toolserver.core.outbound import read_proxies
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.relay import Relay, open_relay
from toolserver.money.purchases.credit_price import atomic
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.offline_key import read_private_key, read_signer
from toolserver.money.purchases.quotes import ADDRESS_MARK
from toolserver.money.purchases.sql_sweeps import record_moved, record_sending
from toolserver.money.purchases.store import read_deposit_states, read_deposits
from toolserver.money.purchases.sweep import plan_worthwhile_sweep
from toolserver.money.purchases.transfer_authorization import Authorization
from toolserver.serving.shared_database import find_marks
from toolserver.settings import Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import LedgerPlace, open_place

_MOVED = ("sent", "used before")


@click.group()
def sweep() -> None:
    """Collect deposits: plan what is worth collecting, sign offline, submit."""


@sweep.command("plan")
@data_dir_option
@click.option("--to", required=True, metavar="ADDRESS", help="Address to move deposits to")
@click.option(
    "--least-usd", type=Decimal, default="1", show_default=True, help="Skip addresses that hold less than this"
)
@click.option(
    "--eth-usd",
    type=click.FloatRange(min=0, min_open=True),
    help="Price of one ether: skip deposits that cost more to move than they yield",
)
@click.option("--uncredited", is_flag=True, help="Also collect money that has not bought anything yet")
def sweep_plan(data_dir: Path | None, to: str, least_usd: Decimal, eth_usd: float | None, uncredited: bool) -> None:
    """Print what must be signed to collect worthwhile deposits: EIP-3009 authorisations as JSON, with cost and yield.

    This moves nothing and needs no private key.
    """
    settings = settings_from(data_dir=data_dir)
    with explain_errors():
        plan = anyio.run(_plan, settings, find_ledger(settings.data_dir), to, least_usd, eth_usd, uncredited)
    click.echo(json.dumps(plan, indent=2))


async def _plan(
    settings: Settings, path: LedgerPlace, to: str, least_usd: Decimal, eth_usd: float | None, uncredited: bool
) -> dict[str, Any]:
    return await plan_worthwhile_sweep(
        settings.payments,
        issued_addresses=read_deposits(path),
        states=dict(read_deposit_states(path)),
        issued=find_marks(settings, patient=True).read(ADDRESS_MARK) or 0,
        clock=find_clock(settings),
        to=to,
        least=max(1, atomic(least_usd)),
        eth_usd=eth_usd,
        uncredited=uncredited,
    )


@sweep.command("sign")
@document_argument
@key_options
@click.option(
    "--account", type=click.IntRange(0, 2**31 - 1), default=0, help="Account number under a wallet's words [0]"
)
@click.option(
    "--to",
    "recipients",
    multiple=True,
    metavar="ADDRESS",
    help="Address that may receive the money; you are asked if it is not given",
)
def sign(document: Path, key_file: Path | None, key_env: str | None, account: int, recipients: tuple[str, ...]) -> None:
    """Sign a plan offline: print it with a signature at each entry. FILE is the plan, or `-`.

    The key is an account's extended private key (xprv…), the words of a wallet (with --account), or one private key.
    """
    with explain_errors():
        signer = read_signer(read_key(key_file, key_env), account=account)
        click.echo(json.dumps(sign_document(document, signer, recipients), indent=2))


@sweep.command("submit")
@document_argument
@key_options
@data_dir_option
@click.option("--rpc", metavar="URL", help="RPC server to send to; by default, the first in payments.rpc_urls")
@json_option
def submit(
    document: Path, key_file: Path | None, key_env: str | None, data_dir: Path | None, rpc: str | None, as_json: bool
) -> None:
    """Submit a signed plan from an account that pays the fees. FILE is the signed plan, or `-`.

    You can run this again after any interruption: nothing is sent twice. Exits with 1 unless everything was moved.
    """
    settings = settings_from(data_dir=data_dir)
    with explain_errors():
        _, entries = load_document(document)
        signed = [(one, read_signature(entry, one)) for entry, one in entries]
        key = read_private_key(read_key(key_file, key_env))
        rows = anyio.run(_submit, settings, signed, key, rpc)
    print_rows(rows, as_json)
    sys.exit(0 if all(row["outcome"] in _MOVED for row in rows) else 1)


def _open_relay(settings: Settings, rpc: str | None, clock: Clock) -> AbstractAsyncContextManager[Relay]:
    return open_relay(find_rpc(settings, rpc), clock, read_proxies(settings.upstream.proxy_address))


async def _submit(
    settings: Settings, signed: list[tuple[Authorization, bytes]], key: PrivateKey, rpc: str | None
) -> list[dict[str, Any]]:
    clock, path = find_clock(settings), find_ledger(settings.data_dir)
    async with open_place(path) as file, _open_relay(settings, rpc, clock) as relay:
        return [await _submit_one(relay, file, one, signature, key, clock) for one, signature in signed]


async def _submit_one(
    relay: Relay, file: GroupCommit, one: Authorization, signature: bytes, key: PrivateKey, clock: Clock
) -> dict[str, Any]:
    async def note(tx: bytes) -> None:
        await record_sending(file, one, tx, int(clock.time() * 1000))

    done = await relay.submit(one, signature, key, note)
    if done.outcome in _MOVED:
        if done.tx is None:
            await record_sending(file, one, None, int(clock.time() * 1000))
        await record_moved(file, one, int(clock.time() * 1000))
    return {
        "from": checksum_address(one.payer),
        "usd": show_usd(one.amount),
        "outcome": done.outcome,
        "tx": None if done.tx is None else f"0x{done.tx.hex()}",
    }
