"""Reads the transfers in the book of the chain one by one, each with its way, its state and what became of it.

What names money from the chain reads it here: cases, statements, exports and closed months.
Amounts are in 0.000001 USDC, times are epoch milliseconds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from toolserver.core.models import iso_of_ms
from toolserver.money.chain.sql_chain_ways import WAY, PaymentWay
from toolserver.money.chain.transfer_states import TransferState
from toolserver.money.ledger.sql_books import EVER
from toolserver.money.purchases.listing import show_signed_usd
from toolserver.sql.connection import SqlConnection, among_values

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
