"""Reads the transfers in the book of the chain one by one, each with its way, its state and its history.

What names money from the chain reads it here: cases, statements of buyers, exports and closed months.
Amounts are in 0.000001 USDC, times are epoch milliseconds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from toolserver.core.models import iso_of_ms
from toolserver.money.chain.sql_chain_ways import WAY, PaymentWay
from toolserver.money.chain.transfer_states import TransferState
from toolserver.money.ledger.sql_books import EVER
from toolserver.money.ledger.statements import AccountPayment, StatementQuery
from toolserver.money.purchases.listing import show_signed_usd
from toolserver.sql.connection import SqlConnection, among_values
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import LedgerPlace, read_place

PAGE = 500  # transfers whose history is read at once


class StateChange(NamedTuple):
    """A state that a transfer came into, in which block the chain had it then, and when that was recorded."""

    state: TransferState
    block: int
    at: int


class BookedMovement(NamedTuple):
    """A transfer in the book. `received` came to an address of ours, `sent` left one; `at` is the time of its block.

    `history` has every change of its state, the first one first, and the last of them is its state now.
    """

    id: bytes
    block: int
    at: int
    tx_hash: bytes
    payer: bytes
    payee: bytes
    received: int
    sent: int
    way: PaymentWay
    state: TransferState
    history: Sequence[StateChange] = ()


_MOVEMENTS = f"""SELECT m.id, m.block_number, m.block_time, m.tx_hash, m.payer, m.payee,
    CASE WHEN m.inward = 1 THEN m.amount ELSE 0 END, CASE WHEN m.outward = 1 THEN m.amount ELSE 0 END,
    {WAY}, m.state
  FROM chain_transfer m WHERE """
_ORDER = " ORDER BY m.block_number, m.id"


def read_movements(db: SqlConnection, since: int = 0, until: int = EVER) -> Iterator[BookedMovement]:
    """Yield the transfers in blocks from `since` to before `until`, in the order of their blocks, page by page."""
    block, last = -1, b""
    sql = f"""{_MOVEMENTS} m.block_time >= ? AND m.block_time < ?
      AND m.block_number >= ? AND (m.block_number > ? OR m.id > ?){_ORDER} LIMIT {PAGE}"""
    while page := _read_page(db, sql, (since, until, block, block, last)):
        yield from page
        block, last = page[-1].block, page[-1].id


def find_movements(db: SqlConnection, hashes: Sequence[bytes]) -> dict[bytes, list[BookedMovement]]:
    """Return the transfers of some transactions, by transaction."""
    found: dict[bytes, list[BookedMovement]] = defaultdict(list)
    for each in _find(db, "m.tx_hash", hashes):
        found[each.tx_hash].append(each)
    return found


def find_received(db: SqlConnection, addresses: Sequence[bytes]) -> list[BookedMovement]:
    """Return the transfers that came to some addresses of ours."""
    return _find(db, "m.inward = 1 AND m.payee", addresses)


def list_in_state(db: SqlConnection, states: Sequence[TransferState]) -> list[BookedMovement]:
    """Return the transfers in some states, in the order of their blocks."""
    condition, values = among_values(db, "m.state", states)
    return _read_page(db, f"{_MOVEMENTS}{condition}{_ORDER}", values)


def read_in_state(place: LedgerPlace, states: Sequence[TransferState]) -> list[BookedMovement]:
    """Return the transfers in some states, whether or not a service runs. Raises StorageFailed."""
    return read_place(place, partial(list_in_state, states=states))


def read_of_transactions(place: LedgerPlace, hashes: Sequence[bytes]) -> dict[bytes, list[BookedMovement]]:
    """Return the transfers of some transactions, whether or not a service runs. Raises StorageFailed."""
    return read_place(place, partial(find_movements, hashes=hashes))


def _find(db: SqlConnection, column: str, values: Sequence[bytes]) -> list[BookedMovement]:
    found, ordered = list[BookedMovement](), sorted(set(values))
    for start in range(0, len(ordered), PAGE):
        condition, parameters = among_values(db, column, ordered[start : start + PAGE])
        found += _read_page(db, f"{_MOVEMENTS}{condition}{_ORDER}", parameters)
    return found


def _read_page(db: SqlConnection, sql: str, parameters: Sequence[Any]) -> list[BookedMovement]:
    page = [BookedMovement._make((*map(_as_bytes, row), ())) for row in db.execute(sql, parameters).fetchall()]
    history: dict[bytes, list[StateChange]] = defaultdict(list)
    for start in range(0, len(page), PAGE):
        condition, ids = among_values(db, "transfer", [each.id for each in page[start : start + PAGE]])
        changes = (
            f"SELECT transfer, state, block_number, at FROM chain_change WHERE {condition} ORDER BY transfer, number"
        )
        for id, state, block, at in db.execute(changes, ids):
            history[bytes(id)].append(StateChange(state, block, at))
    return [each._replace(history=tuple(history[each.id])) for each in page]


def _as_bytes(value: Any) -> Any:
    """Return bytes as bytes on both engines."""
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def show_movement(each: BookedMovement) -> dict[str, Any]:
    """Return a transfer as JSON: its state, its amount, negative if it left us, and every change of its state."""
    history = [{"state": state, "block": block, "at": iso_of_ms(at)} for state, block, at in each.history]
    return {"state": each.state, "amount_usd": show_signed_usd(each.received or -each.sent), "history": history}


MOST = 500  # payments of an account in one answer, the latest

_OWNER = "SELECT hash, account FROM token WHERE hash = :key OR successor = :key"
_TRANSFERS = """SELECT p.address FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.token = :token AND p.hd_index IS NOT NULL
  UNION SELECT p.address FROM tx_reversal r JOIN purchase p ON p.id = r.purchase
  WHERE r.token = :token AND p.hd_index IS NOT NULL
  UNION SELECT p.address FROM quote_topup q JOIN purchase p ON p.memo_hash = q.memo_hash
  WHERE q.token = :token AND p.hd_index IS NOT NULL"""
_SHARED = """SELECT c.tx_hash, p.address, c.amount FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.token = :token AND p.hd_index IS NULL"""
_SIGNED = """SELECT coalesce(c.tx_hash, p.tx_hash), p.authorizer, p.amount FROM x402_payment p
  LEFT JOIN x402_confirmation c ON c.payload = p.payload WHERE p.token = :token AND p.tx_hash IS NOT NULL"""
_REFUNDS = "SELECT tx_hash, payee, amount FROM refund WHERE token = :token AND tx_hash IS NOT NULL"


class AccountPayments:
    """The payments of accounts whose ledger is in a file: all money that is known to be an account's.

    These are the transfers to the addresses of its purchases and top-ups, whatever became of them, its payments by x402
    that bought credits, and what was paid back to it.
    """

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def list_own(self, key: str, query: StatementQuery) -> list[AccountPayment]:
        """Return the latest payments of a token's account in blocks of the query's time, the latest first.

        `key` is the SHA-256 (hex) of the token. An allowance has none of its own. Raises StorageFailed.
        """
        movements: list[BookedMovement] = await self._file.read(partial(list_own, key, query))
        return [_show(each) for each in movements]


def list_own(key: str, query: StatementQuery, db: SqlConnection) -> list[BookedMovement]:
    owner = db.execute(_OWNER, {"key": key}).fetchone()
    if owner is None:
        return []
    token = {"token": owner[0]}
    addresses = [bytes(address) for (address,) in db.execute(_TRANSFERS, token)]
    terms = {
        (bytes(tx), bytes(side), amount)
        for sql in (_SHARED, _SIGNED, _REFUNDS)
        for tx, side, amount in db.execute(sql, token)
    }
    of_transactions = find_movements(db, [tx for tx, _, _ in terms])
    found = {each.id: each for each in find_received(db, addresses)}
    for movements in of_transactions.values():
        found |= {each.id: each for each in movements if _is_among(each, terms)}
    within = [each for each in found.values() if query.since <= each.at < query.until]
    return sorted(within, key=lambda each: (each.block, each.id), reverse=True)[:MOST]


def _is_among(each: BookedMovement, terms: set[tuple[bytes, bytes, int]]) -> bool:
    """Return True for a transfer of these terms: its transaction, the account or address that names it, its amount."""
    amount = each.received or each.sent
    return bool({(each.tx_hash, side, amount) for side in (each.payer, each.payee)} & terms)


def _show(each: BookedMovement) -> AccountPayment:
    changed = each.history[-1].at if each.history else each.at
    return AccountPayment(
        datetime.fromtimestamp(each.at / 1000, UTC),
        each.received or -each.sent,
        each.way,
        each.state,
        datetime.fromtimestamp(changed / 1000, UTC),
        f"0x{each.tx_hash.hex()}",
    )
