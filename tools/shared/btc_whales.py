"""Collect large bitcoin transfers among the newest transactions, and remember them for half an hour."""

import math
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from tools.parsing.bitcoin import RecentTx
from tools.sources import blockstream, mempool
from tools.sources.blockchain_info import UNCONFIRMED_TXS, UnconfirmedTx
from toolserver import Fallback, Ring, TimeSeriesStore, via

LEAST_SAT = 10 * 10**8
KEEP_S, MOST = 1800.0, 8000  # a hundred every 30 seconds are 6,000
SAT = Decimal(10**8)

UNCONFIRMED_SOURCES = (UNCONFIRMED_TXS, mempool.RECENT, blockstream.RECENT)


class SeenTransaction(NamedTuple):
    """A transaction when it was first seen. `moved_sat` is what others were paid, or else all outputs with its own
    change.
    """

    hash: str
    first_seen: datetime
    moved_sat: int
    total_sat: int
    fee_sat: int | None
    vsize: int | None
    change_removed: bool


class WhaleWindow(NamedTuple):
    """The recent transactions: the large ones, largest first; how many in all, and for how long we have watched."""

    whales: tuple[SeenTransaction, ...]
    sampled: int
    seconds: int


def fallbacks_to_see(now: datetime) -> tuple[Fallback[tuple[SeenTransaction, ...]], ...]:
    """Return the fallbacks: the hundred newest with inputs and outputs, or ten with only their total."""
    return (
        via(UNCONFIRMED_TXS, None, lambda txs: tuple(map(without_change, txs))),
        via(mempool.RECENT, None, lambda txs: tuple(total_only(tx, now) for tx in txs)),
        via(blockstream.RECENT, None, lambda txs: tuple(total_only(tx, now) for tx in txs)),
    )


def without_change(tx: UnconfirmedTx) -> SeenTransaction:
    """Return the transaction without its change: outputs to an address that also pays did not move."""
    return SeenTransaction(
        hash=tx.hash,
        first_seen=tx.at,
        moved_sat=sum(output.value_sat for output in tx.outputs if output.address not in tx.inputs),
        total_sat=sum(output.value_sat for output in tx.outputs),
        fee_sat=tx.fee_sat,
        vsize=None if tx.weight is None else math.ceil(tx.weight / 4),
        change_removed=True,
    )


def total_only(tx: RecentTx, now: datetime) -> SeenTransaction:
    """Return the transaction with its total: these lists have no time and do not mark change, so first seen means by
    us.
    """
    return SeenTransaction(tx.txid, now, tx.value_sat, tx.value_sat, tx.fee_sat, tx.vsize, change_removed=False)


def remember(history: TimeSeriesStore, seen: Iterable[SeenTransaction], now: datetime) -> WhaleWindow:
    """Add the transactions just seen to the known ones, each once, and return the window over all of them."""
    ring: Ring[SeenTransaction] = history.ring("btc_seen", keep_s=KEEP_S, most=MOST)
    for each in seen:
        previous = ring.get(each.hash)
        if previous is None or (each.change_removed and not previous.change_removed):
            ring.put(each.hash, each, each.first_seen)
    rows = ring.rows(now)
    whales = sorted((row for row in rows if row.moved_sat >= LEAST_SAT), key=lambda row: (-row.moved_sat, row.hash))
    watched = (now - rows[0].first_seen).total_seconds() if rows else 0
    return WhaleWindow(tuple(whales), len(rows), max(0, int(watched)))


def bitcoin(sat: int) -> Decimal:
    return Decimal(sat) / SAT
