"""Implement `toolserver books chain`: the transfers on the chain by state, and whether they add up to the balances."""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import output_options
from toolserver.cli.plain_lines import write_lines
from toolserver.core.models import iso_of_ms
from toolserver.core.outbound import read_proxies
from toolserver.money.books.sql_reconciliation import BooksCheck
from toolserver.money.chain.balances import BalanceComparison, compare_balances
from toolserver.money.chain.scanner import COLD, ChainScanner, ScanTerms
from toolserver.money.chain.service import book_rules_of
from toolserver.money.chain.sql_chain_book import SqlChainBook
from toolserver.money.chain.sql_chain_sums import ChainSums, read_chain_sums, show_state
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import ChainDown, make_rpc_pool
from toolserver.money.purchases.listing import show_signed_usd
from toolserver.settings import Settings
from toolserver.sql.ledger_place import LedgerPlace, open_place

SHOWN = 20  # maximum number of differing addresses that are listed


@click.command("chain")
@output_options
@click.option(
    "--balances/--no-balances", default=True, show_default=True, help="Read the balance of every address from the chain"
)
def chain(balances: bool, data_dir: Path | None, as_json: bool) -> None:
    """Print the transfers on the chain by state, and whether they add up to the balances. Exits with 1 if not."""
    settings = settings_from(data_dir=data_dir)
    with explain_errors():
        place = find_ledger(settings.data_dir)
        sums = read_chain_sums(place)
        if sums is None:
            raise click.ClickException("the chain was not read yet; a service that sells credits reads it")
        compared, note = anyio.run(compare_all, settings, place, sums) if balances else (None, "not compared")
        if balances:
            sums = read_chain_sums(place, sums.final) or sums  # transfers may have been read meanwhile
    document = _show_sums(sums) | _show_comparison(sums, compared, note)
    click.echo(json.dumps(document, indent=2) if as_json else "\n".join(write_lines(document)))
    sys.exit(0 if document["agrees"] else 1)


async def compare_all(
    settings: Settings, place: LedgerPlace, sums: ChainSums
) -> tuple[BalanceComparison | None, str | None]:
    """Return the comparison of every address after the last final block that was read, or why there is none.

    The logs of an address that differs are read first, since the service last compared all: money may have come to one
    that the service looks at once a day. Raises StorageFailed.
    """
    if not settings.payments.rpc_urls:
        return None, "not compared: no RPC server is configured (payments.rpc_urls)"
    proxies = read_proxies(settings.upstream.proxy_address)
    servers = make_rpc_pool(settings.payments, find_clock(settings), proxies, patient=True)
    try:
        async with open_place(place) as file:
            rules = book_rules_of(settings.payments, settings.x402)
            book, block = SqlChainBook(file, rules), sums.final.block
            compared = await compare_balances(book, servers, block)
            cold = await book.find_mark(COLD)
            if compared.differences and cold is not None and cold.block < block:
                terms = ScanTerms(settings.payments.log_addresses, settings.payments.log_blocks)
                scanner = ChainScanner(book, servers, find_clock(settings), rules, terms)
                with suppress(ChainDown):  # a server that gives no logs still gives balances
                    heads = await servers.read_heads()
                    await scanner.read_differing(compared.differences, cold.block + 1, block, heads)
                    compared = await compare_balances(book, servers, block)
            return compared, None
    except ChainDown as down:
        return None, f"not compared: {down}"
    finally:
        await servers.aclose()


async def check_balances(settings: Settings, place: LedgerPlace) -> BooksCheck:
    """Compare what the addresses hold with the sum of their transfers, or say why not. Raises StorageFailed."""
    sums = read_chain_sums(place)
    if sums is None:
        return BooksCheck("balances", 0, [], "not compared: no service has read the chain yet")
    compared, note = await compare_all(settings, place, sums)
    if compared is None:
        return BooksCheck("balances", 0, [], note)
    sums = read_chain_sums(place, sums.final) or sums  # transfers may have been read meanwhile
    differing = [
        f"{checksum_address(address)}: booked are {show_signed_usd(booked)} USDC, held {show_signed_usd(held)}"
        for address, booked, held in compared.differences
    ]
    if compared.booked != sums.booked:
        states, addresses = show_signed_usd(sums.booked), show_signed_usd(compared.booked)
        differing.append(f"the states add up to {states} USDC, and the addresses to {addresses}")
    return BooksCheck("balances", compared.addresses, differing[:SHOWN], f"after block {sums.final.block}")


def _show_sums(sums: ChainSums) -> dict[str, Any]:
    return {
        "block": sums.final.block,
        "read_at": iso_of_ms(sums.final.at),
        "states": {state: show_state(of_state) for state, of_state in sums.states.items()},
        "newer_blocks": {state: show_state(of_state) for state, of_state in sums.newer.items()},
        "dust": {
            "transfers": sums.dust.received + sums.dust.sent,
            "received_usd": show_signed_usd(sums.dust.received_amount),
            "sent_usd": show_signed_usd(sums.dust.sent_amount),
            "of_nothing": sums.dust.zeros,
        },
        "held_before_usd": show_signed_usd(sums.opening),
        "booked_usd": show_signed_usd(sums.booked),
    }


def _show_comparison(sums: ChainSums, compared: BalanceComparison | None, note: str | None) -> dict[str, Any]:
    """Show what was compared now, or else what the service found when it last compared."""
    found: dict[str, Any]
    if compared is None:
        differences = [(each.address, each.booked, each.held) for each in sums.differences]
        found = {"balances": note, "compared_at": iso_of_ms(sums.balances_at) if sums.balances_at else None}
        agrees = not differences
    else:
        differences = [(each.address, each.booked, each.held) for each in compared.differences]
        found = {"addresses": compared.addresses, "held_usd": show_signed_usd(compared.held)}
        agrees = not differences and compared.held == sums.booked
        if compared.booked != sums.booked:
            found["unassigned_usd"] = show_signed_usd(sums.booked - compared.booked)
    listed = [
        {"address": checksum_address(address), "booked_usd": show_signed_usd(booked), "held_usd": show_signed_usd(held)}
        for address, booked, held in differences[:SHOWN]
    ]
    return {**found, "differences": len(differences), "differing": listed, "agrees": agrees}
