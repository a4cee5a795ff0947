"""Reads the sums of the book of the chain, whether or not a service runs. Amounts are in 0.000001 USDC."""

from functools import partial
from typing import Any, NamedTuple

from toolserver.money.chain.scanner import COLD, FINAL
from toolserver.money.chain.sql_chain_book import ScanMark, find_mark
from toolserver.money.chain.transfer_states import STATES, Dust
from toolserver.money.purchases.listing import show_usd
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, read_place


class StateSums(NamedTuple):
    """The transfers of one state: their number, and what came to and left our addresses."""

    transfers: int
    received: int
    sent: int


class KnownDifference(NamedTuple):
    """An address that did not add up when balances were last compared, after a block."""

    address: bytes
    booked: int
    held: int
    block: int


class ChainSums(NamedTuple):
    """The book through the last final block, and the transfers of newer blocks by state.

    `balances_at` says when balances were last compared (epoch ms, 0 for never), `opening` what wallets held before the
    first block that was read.
    """

    final: ScanMark
    balances_at: int
    states: dict[str, StateSums]
    newer: dict[str, StateSums]
    dust: Dust
    opening: int
    differences: list[KnownDifference]

    @property
    def booked(self) -> int:
        """What all addresses hold after the last final block by the book."""
        moved = sum(sums.received - sums.sent for state, sums in self.states.items() if state != "undone")
        return moved + self.dust.received_amount - self.dust.sent_amount + self.opening


def show_state(sums: StateSums) -> dict[str, Any]:
    """Return the sums of a state as JSON, with amounts in USD."""
    return {"transfers": sums.transfers, "received_usd": show_usd(sums.received), "sent_usd": show_usd(sums.sent)}


def read_chain_sums(place: LedgerPlace, after: ScanMark | None = None) -> ChainSums | None:
    """Return the sums of the book, or None if the chain was never read; by default after the last final block that was
    read. Raises StorageFailed.
    """
    return read_place(place, partial(sum_chain, after=after))


def sum_chain(db: SqlConnection, after: ScanMark | None = None) -> ChainSums | None:
    """Return the same within the caller's transaction."""
    final, cold = after or find_mark(FINAL, db), find_mark(COLD, db)
    if final is None:
        return None
    dust = Dust(*db.execute(_DUST).fetchone())
    opening = db.execute("SELECT coalesce(sum(amount), 0) FROM chain_opening").fetchone()[0]
    found = db.execute("SELECT address, booked, held, block FROM chain_difference ORDER BY address").fetchall()
    return ChainSums(
        final,
        0 if cold is None else cold.at,
        _sum_states(db, "<=", final.block),
        _sum_states(db, ">", final.block),
        dust,
        int(opening),
        [KnownDifference(bytes(address), *rest) for address, *rest in found],
    )


_DUST = """SELECT coalesce(sum(received), 0), coalesce(sum(received_amount), 0), coalesce(sum(sent), 0),
  coalesce(sum(sent_amount), 0), coalesce(sum(zeros), 0), coalesce(max(through), 0) FROM chain_dust"""
_SUMS = """SELECT state, count(*), coalesce(sum(CASE WHEN inward=1 THEN amount END), 0),
  coalesce(sum(CASE WHEN outward=1 THEN amount END), 0)
  FROM chain_transfer WHERE block_number {} ? GROUP BY state"""


def _sum_states(db: SqlConnection, comparison: str, block: int) -> dict[str, StateSums]:
    """Return the sums of each state that has transfers, in the order of the states."""
    rows = db.execute(_SUMS.format(comparison), (block,)).fetchall()
    sums = {state: StateSums(int(count), int(received), int(sent)) for state, count, received, sent in rows}
    return {state: sums[state] for state in STATES if state in sums}
