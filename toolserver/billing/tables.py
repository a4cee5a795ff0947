"""The books in SQLite: a group of operations is a few statements, whatever its size.

What the operations name is loaded, they are decided in Python in their order, and what changed is stored, all within
the writer's transaction. Rows go in by the dozen: each statement hands the GIL over once, and a statement per row would
hand it over so often that a busy event loop and the writer starve each other.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any

from toolserver.billing.books import Account, Books, Hold, Standing, Token, Transfer, invalid_token, standing
from toolserver.billing.rules import Operation, expired, outcome_of

_TOKEN = "t.hash, t.account, t.ref, t.issued_at, t.revoked_at, t.revoke_reason"
_ACCOUNT = "a.id, a.credits, a.debits, a.pending"
_HOLD = (
    "r.call_id, r.account, r.credits, r.state, r.reason, r.endpoint, r.service, r.transfer, r.expires_at, r.settled_at"
)
_TOKENS = f"SELECT {_ACCOUNT}, {_TOKEN} FROM token t JOIN account a ON a.id=t.account WHERE "
_HOLDS = f"SELECT {_ACCOUNT}, {_HOLD} FROM reservation r JOIN account a ON a.id=r.account WHERE "
_CAUSES = "SELECT seq, kind, debit, credit, amount, resolves, cause, at FROM transfer WHERE "
_SIZES = (64, 32, 16, 8, 4, 2, 1)
_account_row = attrgetter("id", "credits", "debits", "pending")
_hold_row = attrgetter(*(field.name for field in fields(Hold)))
SWEPT = 128  # holds voided in one go


def decided(now: Callable[[], int], db: sqlite3.Connection, operations: Sequence[Operation[Any]]) -> list[Any]:
    """Load, decide, store: an outcome for each operation, results and refusals alike."""
    books = loaded(db, operations, now())
    outcomes = [outcome_of(operation, books) for operation in operations]
    store(db, books)
    return outcomes


def swept(now: Callable[[], int], db: sqlite3.Connection) -> int:
    """Void reservations whose time is over, some of them; how many."""
    books = Books(now())
    due = "r.state='open' AND r.expires_at<=? ORDER BY r.expires_at LIMIT ?"
    _hold_rows(books, db.execute(_HOLDS + due, (books.now, SWEPT)))
    return len(decided(now, db, list(expired(books))))


def read_standing(db: sqlite3.Connection, key: str) -> Standing:
    """How an account stands. Raises invalid_token."""
    books = Books(0)
    _load_tokens(db, books, [key])
    return standing(books, key)


def read_valid(db: sqlite3.Connection, key: str) -> int:
    """What a valid token can spend. Raises PaymentRequired."""
    books = Books(0)
    _load_tokens(db, books, [key])
    return books.valid(key)[1].spendable


def hash_of(db: sqlite3.Connection, fingerprint: str) -> str:
    """The token hash that begins so. Raises invalid_token when there is none, or more than one."""
    found = db.execute("SELECT hash FROM token WHERE hash>=? AND hash<? LIMIT 2", (fingerprint, fingerprint + "g"))
    hashes = [hash for (hash,) in found]
    if len(hashes) != 1:
        raise invalid_token()
    return str(hashes[0])


def open_holds(db: sqlite3.Connection, limit: int) -> list[tuple[Hold, str]]:
    """Reservations not settled yet, the first to expire first, each with its token's fingerprint."""
    sql = f"""SELECT {_HOLD}, substr(t.hash, 1, 16) FROM reservation r JOIN token t ON t.account=r.account
      WHERE r.state='open' ORDER BY r.expires_at LIMIT ?"""
    return [(Hold(*row[:-1]), row[-1]) for row in db.execute(sql, (limit,))]


def loaded(db: sqlite3.Connection, operations: Sequence[Operation[Any]], now: int) -> Books:
    """The books as far as these operations need them."""
    seq, account = db.execute("SELECT (SELECT max(seq) FROM transfer), (SELECT max(id) FROM account)").fetchone()
    books = Books(now, (seq or 0) + 1, account + 1)
    needs = [operation.needs() for operation in operations]
    _load_tokens(db, books, [need.key for need in needs if need.key is not None])
    for values in _padded([need.call_id for need in needs if need.call_id is not None]):
        _hold_rows(books, db.execute(_HOLDS + _among("r.call_id", len(values)), values))
    for values in _padded([need.cause for need in needs if need.cause is not None]):
        for row in db.execute(_CAUSES + _among("cause", len(values)), values):
            books.causes[row[6]] = Transfer(*row)
    return books


def _load_tokens(db: sqlite3.Connection, books: Books, keys: list[str]) -> None:
    for column, wanted in (("t.hash", [k for k in keys if len(k) == 64]), ("t.ref", [k for k in keys if len(k) != 64])):
        for values in _padded(wanted):
            for row in db.execute(_TOKENS + _among(column, len(values)), values):
                token = Token(*row[4:])
                books.tokens[token.hash] = books.tokens[token.ref] = token
                books.accounts.setdefault(row[0], Account(*row[:4]))


def _hold_rows(books: Books, rows: Iterable[Any]) -> None:
    for row in rows:
        books.accounts.setdefault(row[0], Account(*row[:4]))
        books.holds[row[4]] = Hold(*row[4:])


def store(db: sqlite3.Connection, books: Books) -> None:
    """Write what changed, the referred-to before the referring."""
    _put(db, _account_sql, list(map(_account_row, books.changed_accounts.values())))
    _put(db, _token_sql, list(books.changed_tokens.values()))
    _put(db, _transfer_sql, books.transfers)
    _put(db, _hold_sql, list(map(_hold_row, books.changed_holds.values())))


def _put(db: sqlite3.Connection, sql: Callable[[int], str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows, some dozens a statement. The sizes are few, so that every statement is prepared once."""
    at = 0
    for size in _SIZES:
        while len(rows) - at >= size:
            db.execute(sql(size), list(chain.from_iterable(rows[at : at + size])))
            at += size


def _padded(values: list[str]) -> Iterator[list[str]]:
    """Values in lists of a few fixed lengths, the last one repeated as often as need be."""
    for at in range(0, len(values), _SIZES[0]):
        part = values[at : at + _SIZES[0]]
        size = min(size for size in _SIZES if size >= len(part))
        yield part + part[-1:] * (size - len(part))


@cache
def _among(column: str, count: int) -> str:
    return f"{column} IN ({_marks(count)})"


def _marks(count: int) -> str:
    return ",".join("?" * count)


def _rows(count: int, columns: int) -> str:
    return ",".join([f"({_marks(columns)})"] * count)


@cache
def _account_sql(count: int) -> str:
    columns = ", ".join(f"{c}=excluded.{c}" for c in ("credits", "debits", "pending"))
    rows = ",".join(["(?,'token',?,?,?)"] * count)
    return (
        f"INSERT INTO account(id, kind, credits, debits, pending) VALUES {rows} ON CONFLICT(id) DO UPDATE SET {columns}"
    )


@cache
def _token_sql(count: int) -> str:
    columns = "revoked_at=excluded.revoked_at, revoke_reason=excluded.revoke_reason"
    return f"INSERT INTO token VALUES {_rows(count, 6)} ON CONFLICT(hash) DO UPDATE SET {columns}"


@cache
def _transfer_sql(count: int) -> str:
    return f"INSERT INTO transfer VALUES {_rows(count, 8)}"


@cache
def _hold_sql(count: int) -> str:
    columns = ", ".join(f"{c}=excluded.{c}" for c in ("state", "reason", "settled_at"))
    return f"INSERT INTO reservation VALUES {_rows(count, 10)} ON CONFLICT(call_id) DO UPDATE SET {columns}"
