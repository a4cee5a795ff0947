"""Compares every buyer's statement, summed as the buyer would sum it, with the balance of the account."""

from collections.abc import Iterator

from toolserver.money.ledger.sql_statements import read_statement
from toolserver.money.ledger.statements import StatementQuery
from toolserver.sql.connection import SqlConnection

PAGE = 5000


def find_statement_differences(db: SqlConnection, now: int) -> Iterator[str]:
    """Yield a text for each account whose statement does not add up to its balance. `now` is in epoch milliseconds."""
    for ref, fingerprint in db.execute("SELECT ref, substr(coalesce(successor, hash), 1, 16) FROM token").fetchall():
        total, before = 0, StatementQuery().before
        while True:
            page = read_statement(db, ref, StatementQuery(before=before, limit=PAGE), now)
            total += sum(entry.credits for entry in page.entries)
            if page.next_before is None:
                break
            before = page.next_before
        if total != page.credits:
            yield f"token {fingerprint}: the statement adds up to {total} credits, the balance is {page.credits}"


def count_tokens(db: SqlConnection) -> int:
    """Return the number of tokens."""
    return int(db.execute("SELECT count(*) FROM token").fetchone()[0])
