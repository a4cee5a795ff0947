"""Reads and writes the ledger's tables in SQLite: a group of operations takes a few statements, whatever its size.

Within the writer's transaction, the accounts and reservations that the operations name are
loaded, the operations are decided in Python in their order, and the changes are stored. Rows
are written dozens at a time: each statement hands the GIL over once, and with one statement
per row a busy event loop and the writer would starve each other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from toolserver.core.caller import find_call_time
from toolserver.money.ledger.allowance import SHOWN_ENDED, Allowance
from toolserver.money.ledger.operations import (
    Charge,
    LedgerOperation,
    Needs,
    Reserve,
    Settle,
    find_owner,
    outcome_of,
    release_expired,
)
from toolserver.money.ledger.owner_limits import AlertCrossing, OwnerLimits
from toolserver.money.ledger.sql_removed_names import find_removed
from toolserver.money.ledger.state import (
    DIED,
    Account,
    AccountStanding,
    Hold,
    LedgerState,
    LedgerTransfer,
    Token,
    invalid_token,
    standing,
)
from toolserver.sql.connection import SqlConnection, among, among_values, insert, is_shared, lock_rows, next_numbers
from toolserver.sql.errors import TransactionLost

_TOKEN = "t.hash, t.account, t.ref, t.issued_at, t.revoked_at, t.revoke_reason, t.successor"
_ACCOUNT = "a.id, a.credits, a.debits, a.pending"
HOLD = (
    "r.call_id, r.account, r.credits, r.state, r.reason, r.endpoint, r.service, r.transfer, r.expires_at, r.settled_at,"
    " r.allowance, r.day"
)
_LIMITS = ", ".join(f"l.{field.name}" for field in fields(OwnerLimits))
_LIMITED = "LEFT JOIN owner_limits l ON l.account=a.id"
_TOKENS = f"SELECT {_ACCOUNT}, {_LIMITS}, {_TOKEN} FROM token t JOIN account a ON a.id=t.account {_LIMITED} WHERE "
_HOLDS = f"SELECT {_ACCOUNT}, {_LIMITS}, {HOLD} FROM reservation r JOIN account a ON a.id=r.account {_LIMITED} WHERE "
_SPENT_TODAY = """SELECT coalesce(sum(credits), 0) FROM reservation
  WHERE account=? AND day=? AND state IN ('open', 'posted')"""
_ALLOWANCES = f"SELECT {', '.join(field.name for field in fields(Allowance))} FROM allowance WHERE "
_CAUSES = "SELECT seq, kind, debit, credit, amount, resolves, cause, at FROM transfer WHERE "
# Only rows that were loaded are changed. If another instance has made the row since, none is, and the group runs again.
_SAME_TOKEN = "WHERE token.account=excluded.account"
_SAME_HOLD = "WHERE reservation.transfer=excluded.transfer"
_RENEWS = """ON CONFLICT(call_id) DO UPDATE SET state=excluded.state, next_at=excluded.next_at
  WHERE journal.state<>'releasing'"""
_allowance_row = attrgetter(*(field.name for field in fields(Allowance)))
_limits_row = attrgetter(*(field.name for field in fields(OwnerLimits)))
_REST = 4 + len(fields(OwnerLimits))  # after the columns of an account and its limits
_hold_row = attrgetter(*(field.name for field in fields(Hold)))
_IS_LIVE = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at>?)"
_LIVE = f"parent=? AND {_IS_LIVE} ORDER BY created_at, id"
SWEPT = 128  # holds voided in one transaction
ARCHIVED_MS = 89 * 86_400_000  # calls that are younger have not been removed
LEASE_MS = 20_000  # for which a call is not released although its process may have died
RENEWED_AFTER_MS = 4_000  # a lease that is older is renewed by its process, which looks every five seconds

R = TypeVar("R")
# An array is computed once. After a wait for a row, PostgreSQL evaluates the row again, and would drop it from a join
# although it is locked.
_OF_NEEDS = """SELECT id FROM account WHERE id = ANY(ARRAY(
  SELECT account FROM token WHERE hash = ANY(:keys) UNION ALL SELECT account FROM token WHERE ref = ANY(:keys)
  UNION ALL SELECT account FROM token WHERE successor = ANY(:keys)
  UNION ALL SELECT account FROM reservation WHERE call_id = ANY(:calls)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.hash = ANY(:keys)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.ref = ANY(:keys)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.id = ANY(:keys)))"""


def apply_operations(db: SqlConnection, operations: Sequence[LedgerOperation[Any]], now: int) -> list[Any]:
    """Load, decide and store within the caller's transaction. Return one outcome per operation: a result or a refusal.

    Other SQLite stores call this to change the ledger in the same transaction as their own tables. `now` is in ms.
    """
    books = load_state(db, operations, now)
    outcomes = [outcome_of(operation, books) for operation in operations]
    store_state(db, books)
    return outcomes


def apply_operation(db: SqlConnection, operation: LedgerOperation[R], now: int) -> R:
    """Apply one operation within the caller's transaction and return its result, or raise its refusal."""
    outcome = apply_operations(db, [operation], now)[0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome  # type: ignore[no-any-return]


class NotedCalls(NamedTuple):
    """The call_ids of calls that have a lease from now on, and of those that have none any more."""

    begun: list[str]
    ended: list[str]


def note_undelivered(
    db: SqlConnection, operations: Sequence[LedgerOperation[Any]], outcomes: Sequence[Any], now: int
) -> NotedCalls:
    """Give each of these calls a lease if it must be released should its process die, and forget those that ended.

    A call has one from its reservation until its answer was sent. An instance that goes on
    with another's call, for the same Idempotency-Key, renews its lease.
    """
    begun: dict[str, str] = {}
    ended: list[str] = []
    for operation, outcome in zip(operations, outcomes, strict=True):
        if not isinstance(operation, Charge | Reserve | Settle) or isinstance(outcome, Exception):
            continue
        is_held = outcome.state == ("open" if isinstance(operation, Reserve) else "posted")
        if operation.undelivered and is_held:
            begun[operation.call_id] = "reserving" if isinstance(operation, Reserve) else "committed"
        elif isinstance(operation, Settle) and (operation.undelivered or operation.no_charge):
            begun.pop(operation.call_id, None)
            ended.append(operation.call_id)
    rows = [(call_id, state, now + LEASE_MS) for call_id, state in begun.items()]
    insert(db, "INSERT INTO journal(call_id, state, next_at) VALUES", rows, _RENEWS, types="text text bigint")
    if ended:
        forget_undelivered(db, ended)
    return NotedCalls(list(begun), ended)


def renew_leases(db: SqlConnection, call_ids: Sequence[str], until: int) -> list[str]:
    """Let the leases of these calls end at `until`, in ms. Returns the call_ids of those that still have one."""
    wanted, calls = among(db, "call_id", call_ids)
    rows = db.execute(f"UPDATE journal SET next_at=? WHERE {wanted} RETURNING call_id", (until, calls))
    return [call_id for (call_id,) in rows.fetchall()]


def end_leases(db: SqlConnection, call_ids: Sequence[str]) -> list[None]:
    """End the leases of calls whose answers could not be sent, within the caller's transaction."""
    renew_leases(db, call_ids, 0)
    return [None] * len(call_ids)


def has_due_calls(db: SqlConnection, now: int) -> bool:
    """Return True if `release_undelivered` would find calls whose lease has ended."""
    return db.execute("SELECT 1 FROM journal WHERE next_at<=? LIMIT 1", (now,)).fetchone() is not None


def forget_undelivered(db: SqlConnection, call_ids: Sequence[str]) -> list[None]:
    """Record that the answers of these charges were sent, within the caller's transaction."""
    wanted, calls = among(db, "call_id", call_ids)
    db.execute(f"DELETE FROM journal WHERE {wanted}", (calls,))
    return [None] * len(call_ids)


def release_undelivered(db: SqlConnection, now: int, *, only_due: bool = False) -> list[Hold]:
    """Release the calls whose answers were not sent before the previous process ended, and
    forget the answers that are kept for their Idempotency-Keys, within the caller's
    transaction. Returns the reservations.

    With `only_due`, and always where instances share the ledger, these are the calls whose lease has ended.
    """
    due = "WHERE next_at<=? ORDER BY next_at, call_id LIMIT ?" if only_due or is_shared(db) else ""
    calls = db.execute(f"SELECT call_id FROM journal {due}", (now, SWEPT) if due else ())
    operations = [Settle(call, DIED) for (call,) in calls]
    books = load_state(db, operations, now)
    outcomes = [outcome_of(operation, books) for operation in operations]
    released = [outcome.call_id for outcome in outcomes if not isinstance(outcome, Exception) and not outcome.replayed]
    store_state(db, books)
    wanted, calls = among(db, "call_id", [operation.call_id for operation in operations])
    for table in ("idempotency", "journal"):
        db.execute(f"DELETE FROM {table} WHERE {wanted}", (calls,))
    return [books.holds[call] for call in released]


def void_expired(db: SqlConnection, now: int) -> int:
    """Void up to `SWEPT` expired reservations, and return how many."""
    books = LedgerState(now)
    due = "r.state='open' AND r.expires_at<=? ORDER BY r.expires_at LIMIT ?"
    _hold_rows(books, db.execute(_HOLDS + due, (books.now, SWEPT)))
    return len(apply_operations(db, list(release_expired(books)), now))


def read_standing(db: SqlConnection, key: str, now: int) -> AccountStanding:
    """Return the state of an account. Raises invalid_token."""
    return standing(read_account(db, key, now), key)


def read_account(db: SqlConnection, key: str, now: int) -> LedgerState:
    """Return the state of a token, or of an allowance and the token that pays. It is empty for an unknown key."""
    books = LedgerState(now)
    _load_tokens(db, books, [key])
    return books


def list_allowances(db: SqlConnection, key: str, now: int) -> list[Allowance]:
    """Return the live allowances of a token, followed by the newest ended ones. Raises what `find_owner` raises."""
    owner = find_owner(read_account(db, key, now), key)
    live = _read_allowances(db, _LIVE, (owner.hash, now))
    ended = f"parent=? AND NOT ({_IS_LIVE}) ORDER BY created_at DESC, id DESC LIMIT {SHOWN_ENDED}"
    return live + _read_allowances(db, ended, (owner.hash, now))


def hash_of(db: SqlConnection, fingerprint: str) -> str:
    """Return the hash of a token or allowance that begins with a fingerprint. Raises
    invalid_token unless there is exactly one.
    """
    hashes = []
    for table, column in (("token", "hash"), ("token", "successor"), ("allowance", "hash")):
        sql = f"SELECT {column} FROM {table} WHERE {column}>=? AND {column}<? LIMIT 2"
        hashes += [hash for (hash,) in db.execute(sql, (fingerprint, fingerprint + "g"))]
    if len(hashes) != 1:
        raise invalid_token()
    return str(hashes[0])


def find_cause(db: SqlConnection, start: str) -> str | None:
    """Return the cause of a transfer that starts with a text, or None if there is none."""
    row = db.execute("SELECT cause FROM transfer WHERE cause>=? AND cause<?", (start, start + "\U0010ffff")).fetchone()
    return str(row[0]) if row else None


def open_holds(db: SqlConnection, limit: int) -> list[tuple[Hold, str]]:
    """Return the open reservations, the earliest to expire first, each with its token's fingerprint."""
    sql = f"""SELECT {HOLD}, substr(t.hash, 1, 16) FROM reservation r JOIN token t ON t.account=r.account
      WHERE r.state='open' ORDER BY r.expires_at LIMIT ?"""
    return [(Hold(*row[:-1]), row[-1]) for row in db.execute(sql, (limit,))]


def load_state(db: SqlConnection, operations: Sequence[LedgerOperation[Any]], now: int) -> LedgerState:
    """Return the part of the ledger that these operations need. Raises TransactionLost if it must be run again."""
    needs = [operation.needs() for operation in operations]
    locked = lock_accounts(db, needs)
    seq, account = next_numbers(db, "ledger_number", "SELECT max(seq) FROM transfer", "SELECT max(id) FROM account")
    books = LedgerState(now, seq, account)
    _load_tokens(db, books, [need.key for need in needs if need.key is not None])
    named = [need.allowance for need in needs if need.allowance is not None]
    _load_allowances(db, books, "id", [name for name in named if len(name) != 64])
    _load_allowances(db, books, "hash", [name for name in named if len(name) == 64])
    for column in ("t.hash", "t.successor"):
        _load_owners(db, books, [name for name in named if len(name) == 64], column)
    for owner in {need.key for need in needs if need.family and need.key in books.tokens}:
        _add_allowances(books, _read_allowances(db, _LIVE, (books.tokens[owner].hash, now)))
    _load_spent_today(db, books, {need.key for need in needs if need.today and need.key in books.tokens})
    calls = [need.call_id for need in needs if need.call_id is not None]
    _hold_rows(books, _select(db, _HOLDS, "r.call_id", calls))
    _load_removed(db, books, calls)
    for row in _select(db, _CAUSES, "cause", [need.cause for need in needs if need.cause is not None]):
        books.causes[row[6]] = LedgerTransfer(*row)
    if locked is not None:  # a token may have been issued, with its first credits, after the tokens were loaded
        _load_tokens(
            db, books, [n.key for n in needs if n.cause in books.causes and n.key and n.key not in books.tokens]
        )
    spent = {hold.allowance for hold in books.holds.values() if hold.allowance is not None}
    _load_allowances(db, books, "id", list(spent))
    if locked is not None and not books.accounts.keys() <= locked:
        raise TransactionLost("a call or token came to be between the lock and the load")
    return books


def _load_removed(db: SqlConnection, books: LedgerState, call_ids: list[str]) -> None:
    """Load which of these calls were removed. Calls of our own that are younger than any archive are not looked up."""
    old = [
        call for call in call_ids if (find_call_time(call) or 0) < books.now - ARCHIVED_MS and call not in books.holds
    ]
    if old:
        removed = find_removed(db, [call.removeprefix("call_") for call in old])
        books.removed |= {call for call in old if call.removeprefix("call_") in removed}


def _load_tokens(db: SqlConnection, books: LedgerState, keys: list[str]) -> None:
    """Load tokens with their accounts. For the key of an allowance, load the allowance and the token that pays."""
    _load_owners(db, books, keys)
    if unknown := [key for key in keys if key not in books.tokens]:
        _load_allowances(db, books, "hash", [key for key in unknown if len(key) == 64])
        _load_allowances(db, books, "ref", [key for key in unknown if len(key) != 64])
        _load_owners(db, books, list({books.allowances[key].parent for key in unknown if key in books.allowances}))
        rest = [key for key in unknown if len(key) == 64 and key not in books.allowances]
        _load_owners(db, books, rest, "t.successor")


def _load_allowances(db: SqlConnection, books: LedgerState, column: str, keys: list[str]) -> None:
    _add_allowances(books, (Allowance(*row) for row in _select(db, _ALLOWANCES, column, keys)))


def _read_allowances(db: SqlConnection, condition: str, values: Sequence[Any]) -> list[Allowance]:
    return [Allowance(*row) for row in db.execute(_ALLOWANCES + condition, values)]


def _add_allowances(books: LedgerState, allowances: Iterable[Allowance]) -> None:
    """Add allowances to the state. An allowance that is already loaded stays the same object."""
    for allowance in allowances:
        if allowance.id not in books.allowances:
            for key in (allowance.hash, allowance.ref, allowance.id):
                books.allowances[key] = allowance


def _load_owners(db: SqlConnection, books: LedgerState, keys: list[str], by_hash: str = "t.hash") -> None:
    for column, wanted in ((by_hash, [k for k in keys if len(k) == 64]), ("t.ref", [k for k in keys if len(k) != 64])):
        for row in _select(db, _TOKENS, column, wanted):
            books.keep_token(Token(*row[_REST:]))
            _add_account(books, row)


def _hold_rows(books: LedgerState, rows: Iterable[Any]) -> None:
    for row in rows:
        _add_account(books, row)
        books.holds[row[_REST]] = Hold(*row[_REST:])


def _add_account(books: LedgerState, row: Any) -> None:
    """Add an account and its limits, if it has some, to the state. Those that are already loaded stay the same."""
    books.accounts.setdefault(row[0], Account(*row[:4]))
    if row[4] is not None:
        books.limits.setdefault(row[0], OwnerLimits(*row[4:_REST]))


def _load_spent_today(db: SqlConnection, books: LedgerState, keys: Iterable[str]) -> None:
    """Load what tokens without limits spent today, so that operations of the group count on."""
    for account in [books.accounts[books.tokens[key].account] for key in keys]:
        if account.id not in books.limits:
            limits = books.draft_limits(account)
            limits.spent_today = int(db.execute(_SPENT_TODAY, (account.id, limits.day)).fetchone()[0])
            books.limits[account.id] = limits


def _list_columns(row: type) -> Sequence[str]:
    return [field.name for field in fields(row)] if is_dataclass(row) else row._fields  # type: ignore[attr-defined]


class _RowWriter(NamedTuple):
    """How the rows of a table are written: the statement up to its rows, the types of their
    values on a server, and what follows.
    """

    into: str
    types: str
    more: str

    @classmethod
    def of(cls, table: str, row: type, more: str) -> "_RowWriter":
        """Return this for a table whose columns are the fields of a class."""
        hints = get_type_hints(row)
        types = ["bigint" if int in (hints[name], *get_args(hints[name])) else "text" for name in _list_columns(row)]
        return cls(f"INSERT INTO {table} VALUES", " ".join(types), more)

    def put(self, db: SqlConnection, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows. Raises TransactionLost."""
        if insert(db, self.into, rows, self.more, types=self.types) != len(rows):
            raise TransactionLost("another instance wrote the same row first")


def _replace(*columns: str) -> str:
    return "DO UPDATE SET " + ", ".join(f"{column}=excluded.{column}" for column in columns)


def _replace_all(row: type, *fixed: str) -> str:
    return _replace(*(name for name in _list_columns(row) if name not in fixed))


_ACCOUNT_ROWS = _RowWriter(
    "INSERT INTO account(id, kind, credits, debits, pending) VALUES",
    "bigint text bigint bigint bigint",
    f"ON CONFLICT(id) {_replace('credits', 'debits', 'pending')}",
)
_TOKEN_ROWS = _RowWriter.of(
    "token", Token, f"ON CONFLICT(hash) {_replace('revoked_at', 'revoke_reason', 'successor')} {_SAME_TOKEN}"
)
_ALLOWANCE_ROWS = _RowWriter.of(
    "allowance",
    Allowance,
    f"ON CONFLICT(id) {_replace_all(Allowance, 'id', 'hash', 'ref', 'parent', 'created_at', 'service')}",
)
_LIMITS_ROWS = _RowWriter.of(
    "owner_limits", OwnerLimits, f"ON CONFLICT(account) {_replace_all(OwnerLimits, 'account')}"
)
_TRANSFER_ROWS = _RowWriter.of("transfer", LedgerTransfer, "ON CONFLICT DO NOTHING")
_HOLD_ROWS = _RowWriter.of(
    "reservation", Hold, f"ON CONFLICT(call_id) {_replace('state', 'reason', 'settled_at')} {_SAME_HOLD}"
)
_CROSSING_ROWS = _RowWriter.of(
    "owner_alert",
    AlertCrossing,
    f"ON CONFLICT(account, alert) {_replace_all(AlertCrossing, 'account', 'alert')}",
)


def store_state(db: SqlConnection, books: LedgerState) -> None:
    """Write the changes; referenced rows before the rows that refer to them."""
    changed = books.changed_accounts.values()
    _ACCOUNT_ROWS.put(db, [(each.id, "token", each.credits, each.debits, each.pending) for each in changed])
    _TOKEN_ROWS.put(db, list(books.changed_tokens.values()))
    _ALLOWANCE_ROWS.put(db, list(map(_allowance_row, books.changed_allowances.values())))
    _LIMITS_ROWS.put(db, list(map(_limits_row, books.changed_limits.values())))
    _TRANSFER_ROWS.put(db, books.transfers)
    _HOLD_ROWS.put(db, list(map(_hold_row, books.changed_holds.values())))
    _CROSSING_ROWS.put(db, list({(each.account, each.alert): each for each in books.crossings}.values()))


def _select(db: SqlConnection, query: str, column: str, values: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of a query, which ends with WHERE, that have one of these values in a column."""
    if values:
        wanted, parameters = among_values(db, column, values)
        yield from db.execute(query + wanted, parameters)


def take_crossings(db: SqlConnection, limit: int) -> list[tuple[str, AlertCrossing]]:
    """Remove the oldest crossings that nobody was notified of, within the caller's transaction, and return them.

    Each comes with the SHA-256 (hex) of the token whose limits were crossed.
    """
    first = "SELECT account, alert FROM owner_alert ORDER BY crossed_at LIMIT ?"
    columns = ", ".join(AlertCrossing._fields)
    sql = f"DELETE FROM owner_alert WHERE (account, alert) IN ({first}) RETURNING {columns}"
    taken = sorted((AlertCrossing(*row) for row in db.execute(sql, (limit,)).fetchall()), key=attrgetter("crossed_at"))
    payer = "SELECT coalesce(successor, hash) FROM token WHERE account=?"
    return [(db.execute(payer, (each.account,)).fetchone()[0], each) for each in taken]


def lock_accounts(db: SqlConnection, needs: Sequence[Needs]) -> set[int] | None:
    """Lock the accounts that the operations need, and return their ids, or None if no other process can write."""
    keys = {name for need in needs for name in (need.key, need.allowance) if name is not None}
    calls = {need.call_id for need in needs if need.call_id is not None}
    return lock_rows(db, _OF_NEEDS, {"keys": list(keys), "calls": list(calls)})
