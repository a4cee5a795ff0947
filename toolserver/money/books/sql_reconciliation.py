"""Check everything about money: the ledger, buyers' statements, receipts, books, the log, and the chain."""

from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from toolserver.money.books.month_proof import FindKey
from toolserver.money.books.sql_books import compare_books
from toolserver.money.books.sql_months import find_month_differences, list_closed
from toolserver.money.ledger.sql_books import EVER
from toolserver.money.ledger.sql_invariants import find_breaches, read_totals
from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.ledger.sql_statements import count_tokens, find_statement_differences
from toolserver.money.purchases.chain.audit import ClaimedMoney, ClaimedTransfer, compare_with_chain
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.refunds import nonce_of
from toolserver.money.purchases.store import sum_swept
from toolserver.money.receipts.keys import Key
from toolserver.money.receipts.log import LogMark
from toolserver.money.receipts.sql_audit import (
    count_logged,
    count_receipts,
    find_follower_differences,
    find_log_differences,
    find_receipt_differences,
    find_unlogged,
    list_calls_of,
)
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import LedgerPlace, read_place

SHOWN = 20  # maximum number of differences listed for each check

_DEPOSITS = """SELECT c.tx_hash, p.address, c.amount FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE p.hd_index IS NOT NULL ORDER BY c.credited_at DESC"""
_SIGNED = """SELECT coalesce(c.tx_hash, p.tx_hash), p.authorizer, p.amount, p.nonce FROM x402_payment p
  LEFT JOIN x402_confirmation c ON c.payload = p.payload
  WHERE p.state = 'settled' AND c.undone_at IS NULL ORDER BY p.settled_at DESC"""
_REFUNDS = "SELECT tx_hash, payer, payee, amount, id FROM refund WHERE state = 'paid' ORDER BY ended_at DESC"


class BooksCheck(NamedTuple):
    """One comparison: how much was compared and what differs. `note` says what was not compared, and why."""

    name: str
    compared: int
    differences: list[str]
    note: str | None = None


class FollowedLedger(NamedTuple):
    """Another service's ledger that ours follows: our name there, and its file, if it is on this machine."""

    service: str
    path: Path | None


async def check_books(
    file: GroupCommit,
    place: LedgerPlace,
    mark: LogMark | None,
    now: int,
    followed: FollowedLedger | None = None,
    keys: Iterable[Key] = (),
) -> list[BooksCheck]:
    """Run every comparison that needs only our own rows, on one snapshot of them. Raises StorageFailed.

    The receipts of a service that follows a ledger are compared with the calls in that ledger's file. `keys` are
    those that signed closed months.
    """
    rewritten = await file.find_rewritten()
    checks = read_place(place, partial(_check, rewritten, mark, now, {key.kid: key for key in keys}.get))
    return checks if followed is None else [_compare_followed(check, followed, place, now) for check in checks]


def _compare_followed(check: BooksCheck, followed: FollowedLedger, place: LedgerPlace, now: int) -> BooksCheck:
    """Return the check, with the receipts compared against the followed ledger."""
    if check.name != "receipts":
        return check
    if followed.path is None:
        return BooksCheck(check.name, 0, [], "not compared: the ledger is another service's; name its folder (--owner)")
    calls = read_place(followed.path, partial(list_calls_of, followed.service))
    horizon = read_place(followed.path, read_horizon)
    differences = read_place(place, lambda db: list(islice(find_follower_differences(calls, now, db, horizon), SHOWN)))
    return BooksCheck(check.name, check.compared, differences)


async def check_chain(place: LedgerPlace, chain: RpcPool | None) -> BooksCheck:
    """Compare payments and refunds with the chain, or say why they were not compared. Raises StorageFailed."""
    if chain is None:
        return BooksCheck("chain", 0, [], "not compared: no RPC server is configured (payments.rpc_urls)")
    claimed = read_place(place, _read_claimed)
    try:
        await chain.check_ready()
        audit = await compare_with_chain(claimed, chain)
    except ChainDown as down:
        return BooksCheck("chain", 0, [], f"not compared: {down}")
    return BooksCheck("chain", audit.compared, audit.differences[:SHOWN], "; ".join(audit.notes) or None)


def _check(
    rewritten: list[str], mark: LogMark | None, now: int, find_key: FindKey, db: SqlConnection
) -> list[BooksCheck]:
    def check(name: str, count: int, *differences: Iterable[str]) -> BooksCheck:
        return BooksCheck(name, count, [text for each in differences for text in islice(each, SHOWN)])

    breaches = (f"{breach.rule}: {breach.where}" for breach in find_breaches(db, 0))
    strange = (f"not written by this service: {where}" for where in rewritten)
    return [
        check("ledger", read_totals(db).transfers, strange, breaches),
        check("statements", count_tokens(db), find_statement_differences(db, now)),
        check("receipts", count_receipts(db), find_receipt_differences(db, now)),
        check("books", _count_payments(db), compare_books(db, 0, EVER)),
        check("log", count_logged(db), find_log_differences(db, mark), find_unlogged(db)),
        check("months", len(list_closed(db)), find_month_differences(db, find_key)),
    ]


def _count_payments(db: SqlConnection) -> int:
    tables = ("tx_credit", "x402_payment", "refund")
    return sum(int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables)


def _read_claimed(db: SqlConnection) -> ClaimedMoney:
    deposits = [ClaimedTransfer(bytes(tx), bytes(to), None, amount) for tx, to, amount in db.execute(_DEPOSITS)]
    signed = [ClaimedTransfer(bytes(tx), None, bytes(by), amount) for tx, by, amount, _ in db.execute(_SIGNED)]
    refunds = [
        ClaimedTransfer(bytes(tx), bytes(to), bytes(by), amount, nonce_of(id))
        for tx, by, to, amount, id in db.execute(_REFUNDS)
    ]
    return ClaimedMoney(deposits, signed, refunds, sum_swept(db))
