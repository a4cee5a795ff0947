"""Read which payments wait for a person or for the chain, whether or not the service runs.

A case that names money from the chain says what the book of the chain has of it. Money that the book has as paid a
second time, too little or held, and of which no document is a case, is a case by the book alone.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolserver.money.chain.sql_chain_transfers import (
    BookedMovement,
    read_in_state,
    read_of_transactions,
    show_movement,
)
from toolserver.money.chain.transfer_states import TransferState
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.listing import CaseKind, ReviewCase, show_case, show_usd
from toolserver.money.purchases.matching import Policy
from toolserver.money.purchases.sql_doubts import read_review_cases
from toolserver.money.purchases.store import read_cases, read_purchases
from toolserver.money.x402.records import show_pending
from toolserver.money.x402.store import read_confirmation_cases, read_payment_cases, read_pending
from toolserver.sql.ledger_place import LedgerPlace

_WAITING: tuple[TransferState, ...] = ("pending", "quoted", "late", "held", "foreign")
_FOR_A_PERSON: tuple[TransferState, ...] = ("second", "short")  # cases, whatever their buyer confirms
_BY_BOOK: dict[TransferState, str] = {"second": "second_transfer", "short": "below_minimum", "held": "held"}
"""The states of money that needs a person, and what such a case is called where documents have it."""
QUOTES_READ = 1000
SETTLING_MS = 600_000  # for which a second payment may still become a purchase of its own


class OpenQuotes(NamedTuple):
    """Offers to buy credits that have not expired, and their sum in USD. `more`: only the newest were counted."""

    number: int
    usd: float
    more: bool


def list_open_cases(path: LedgerPlace, now: int, limit: int) -> list[dict[str, Any]]:
    """List cases that need attention, oldest first, as `show_case` writes them. `now` is in milliseconds.

    Raises StorageFailed.
    """
    cases = read_cases(path) + read_payment_cases(path, now)
    cases += read_review_cases(path) + read_confirmation_cases(path)
    cases += list(_find_by_book(read_in_state(path, list(_BY_BOOK)), cases, now))
    listed = sorted(cases, key=lambda case: case.at)[:limit]
    hashes = [bytes(case.tx) for case in listed if case.tx is not None]
    movements = read_of_transactions(path, hashes)
    return [show_case(case) | {"on_chain": _show_on_chain(case, movements)} for case in listed]


def _find_by_book(movements: Sequence[BookedMovement], cases: Sequence[ReviewCase], now: int) -> Iterator[ReviewCase]:
    """Yield the money that needs a person by its state in the book, and of which there is no case yet."""
    known = {bytes(case.tx) for case in cases if case.tx is not None}
    for each in movements:
        if each.tx_hash not in known and each.at < now - SETTLING_MS:
            kind: CaseKind = "held" if each.state == "held" else "unapplied"
            yield ReviewCase(kind, each.tx_hash, each.payee, each.received, _BY_BOOK[each.state], None, each.at)


def _show_on_chain(case: ReviewCase, movements: Mapping[bytes, Sequence[BookedMovement]]) -> list[dict[str, Any]]:
    """Return the transfers of a case as the book of the chain has them now, each with its history."""
    of_transaction = movements.get(bytes(case.tx), ()) if case.tx is not None else ()
    return [show_movement(each) for each in of_transaction if bytes(case.wallet) in (each.payee, each.payer)]


def add_waiting(
    path: LedgerPlace, deposits: Sequence[dict[str, Any]], policy: Policy, servers: int
) -> list[dict[str, Any]]:
    """Return unclaimed deposits with what each waits for and its transfers in the book of the chain, and after them the
    other money there that waits: for blocks, for a second RPC server where there are fewer than two `servers`, or for a
    person. Raises StorageFailed.
    """
    waiting: dict[str, list[BookedMovement]] = defaultdict(list)
    cases: dict[str, list[BookedMovement]] = defaultdict(list)
    for each in read_in_state(path, (*_WAITING, *_FOR_A_PERSON)):
        if each.received:
            (cases if each.state in _FOR_A_PERSON else waiting)[checksum_address(each.payee)].append(each)
    rows = []
    for deposit in deposits:
        transfers = waiting.pop(deposit["wallet"], []) + cases[deposit["wallet"]]
        reasons = {_say_what_for(each, policy, servers): None for each in transfers}
        needs = "toolserver recover" if deposit["purchase"] == "lost" else "its buyer to confirm it"
        rows.append(deposit | {"waits_for": "; ".join(reasons) or needs, "tx": _name_all(transfers)})
    for wallet, transfers in waiting.items():
        for each in transfers:
            needs = _say_what_for(each, policy, servers)
            row = {"index": None, "wallet": wallet, "amount_usd": show_usd(each.received), "purchase": each.state}
            rows.append(row | {"waits_for": needs, "tx": _name_all([each])})
    return rows


def _name_all(transfers: Sequence[BookedMovement]) -> str | None:
    return ", ".join(f"0x{each.tx_hash.hex()}" for each in transfers) or None


def _say_what_for(each: BookedMovement, policy: Policy, servers: int) -> str:
    """Return in words what a transfer waits for."""
    needs_second = policy.needs_agreement(each.received) and servers < 2
    if each.state == "foreign":
        return "the operator: no document explains it"
    if each.state in _FOR_A_PERSON:
        return "a person: see --cases"
    if each.state == "held":
        return "a second RPC server, or a person" if needs_second else "a person: see --cases"
    finality = policy.finality(each.received)
    blocks = {"blocks": f"{policy.blocks} blocks on top", "safe": "a safe block", "finalized": "a final block"}[
        finality
    ]
    needs = blocks if each.state == "pending" else "its buyer to confirm it"
    return f"{needs}, and a second RPC server" if needs_second else needs


def list_pending_payments(path: LedgerPlace, now: int, limit: int) -> list[dict[str, Any]]:
    """List signed payments (x402) that are not settled, as `show_pending` writes them. Raises StorageFailed."""
    return [show_pending(payment, now) for payment in read_pending(path)[:limit]]


def sum_open_quotes(path: LedgerPlace, now: int) -> OpenQuotes:
    """Sum the offers that can still be paid in time. `now` is in milliseconds. Raises StorageFailed."""
    quotes = read_purchases(path, "quoted", QUOTES_READ)
    valid = [quote for quote in quotes if quote.expires > now]
    return OpenQuotes(len(valid), sum(quote.amount for quote in valid) / ATOMIC, len(quotes) == QUOTES_READ)
