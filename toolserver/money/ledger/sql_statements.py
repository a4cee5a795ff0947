"""Reads statements from the ledger's tables in SQLite: each kind of entry by its own index, then merged."""

from collections.abc import Iterator
from typing import Any

from toolserver.money.ledger.sql_removed import read_horizon, read_removed_of
from toolserver.money.ledger.sql_tables import HOLD, read_account
from toolserver.money.ledger.state import Hold
from toolserver.money.ledger.statements import (
    LedgerEntry,
    StatementPage,
    StatementQuery,
    make_page,
    show_call,
    show_income,
    show_removed,
    show_reversal,
    show_taken,
)
from toolserver.sql.connection import SqlConnection, in_order

_RANGE = "t.at >= :since AND t.at < :until ORDER BY t.seq DESC LIMIT :limit"
_CALLS = f"""SELECT t.seq, t.at, {HOLD} FROM reservation r CROSS JOIN transfer t ON t.seq = r.transfer
  WHERE r.account = :account AND r.transfer < :before AND t.at >= :since AND t.at < :until
  ORDER BY r.transfer DESC LIMIT :limit"""
_REVERSALS = f"""SELECT t.seq, t.at, {HOLD} FROM transfer t
  CROSS JOIN reservation r ON r.account = t.credit AND r.transfer = t.resolves
  WHERE t.credit = :account AND t.credit > 3 AND t.seq < :before AND t.kind = 'reverse' AND {_RANGE}"""
_INCOME = f"""SELECT t.seq, t.at, t.amount, t.cause FROM transfer t
  WHERE t.credit = :account AND t.credit > 3 AND t.seq < :before AND t.kind = 'posted' AND {_RANGE}"""
_TAKEN = f"""SELECT t.seq, t.at, t.amount, t.cause FROM transfer t
  WHERE t.debit = :account AND t.credit = 1 AND t.seq < :before AND {_RANGE}"""


_OWN_CALLS = f"""SELECT t.seq, t.at, {HOLD} FROM reservation r CROSS JOIN transfer t ON t.seq = r.transfer
  WHERE r.allowance = :allowance AND r.transfer < :before AND t.at >= :since AND t.at < :until
  ORDER BY r.transfer DESC LIMIT :limit"""
_OWN_REVERSALS = f"""SELECT t.seq, t.at, {HOLD} FROM reservation r
  CROSS JOIN transfer t ON t.resolves = r.transfer AND t.kind = 'reverse'
  WHERE r.allowance = :allowance AND r.state = 'reversed' AND t.seq < :before AND {_RANGE}"""
PAGE = 5000


def read_statement(db: SqlConnection, key: str, query: StatementQuery, now: int) -> StatementPage:
    """Return a page of the statement of a token, an account by its reference, or an allowance. Raises invalid_token."""
    books = read_account(db, key, now)
    account, allowance = books.accounts[books.payer(key).account], books.find_allowance(key)
    own = None if allowance is None else allowance.id
    parameters = {**query._asdict(), "account": account.id, "allowance": own, "limit": query.limit + 1}
    entries = (
        _find_entries(db, parameters) if allowance is None else _find_calls(db, parameters, _OWN_CALLS, _OWN_REVERSALS)
    )
    page = (*entries, *_find_removed(db, query, account.id, own))
    return make_page(page, query, books.find_spendable(account, key))


def _find_removed(
    db: SqlConnection, query: StatementQuery, account: int, allowance: str | None
) -> Iterator[LedgerEntry]:
    """Yield one entry for all calls whose rows were removed, dated at the end of their time span."""
    at = read_horizon(db) - 1
    if query.since <= at < query.until and query.before > 0:
        removed = read_removed_of(db, account, allowance)
        if removed.transfers:
            yield show_removed(at, removed.used, allowance)


def _find_entries(db: SqlConnection, parameters: dict[str, Any]) -> Iterator[LedgerEntry]:
    yield from _find_calls(db, parameters, _CALLS, _REVERSALS)
    for row in db.execute(_INCOME, parameters):
        yield show_income(*row)
    for row in db.execute(_TAKEN, parameters):
        yield show_taken(*row)


def _find_calls(db: SqlConnection, parameters: dict[str, Any], calls: str, reversals: str) -> Iterator[LedgerEntry]:
    for seq, at, *hold in db.execute(in_order(db, calls), parameters):
        yield show_call(Hold(*hold), seq, at)
    for seq, at, *hold in db.execute(in_order(db, reversals), parameters):
        yield show_reversal(Hold(*hold), seq, at)


def find_statement_differences(db: SqlConnection, now: int, page_size: int = PAGE) -> Iterator[str]:
    """Yield a text for each account whose statement does not add up to its balance. `now` is in epoch milliseconds."""
    for ref, fingerprint in db.execute("SELECT ref, substr(coalesce(successor, hash), 1, 16) FROM token").fetchall():
        total, before = 0, StatementQuery().before
        while True:
            page = read_statement(db, ref, StatementQuery(before=before, limit=page_size), now)
            total += sum(entry.credits for entry in page.entries)
            if page.next_before is None:
                break
            before = page.next_before
        if total != page.credits:
            yield f"token {fingerprint}: the statement adds up to {total} credits, the balance is {page.credits}"


def count_tokens(db: SqlConnection) -> int:
    """Return the number of tokens."""
    return int(db.execute("SELECT count(*) FROM token").fetchone()[0])
