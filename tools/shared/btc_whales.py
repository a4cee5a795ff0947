"""Large bitcoin transfers among the transactions that were just heard of, remembered for half an hour."""

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
KEEP_S, MOST = 1800.0, 8000  # a hundred each 30 seconds are 6,000
SAT = Decimal(10**8)

UNCONFIRMED_SOURCES = (UNCONFIRMED_TXS, mempool.RECENT, blockstream.RECENT)


class SeenTransaction(NamedTuple):
    """A transaction when it was first seen. `moved_sat` is what others were paid; else, all, with its own change."""

    hash: str
    first_seen: datetime
    moved_sat: int
    total_sat: int
    fee_sat: int | None
    vsize: int | None
    change_removed: bool


class WhaleWindow(NamedTuple):
    """What was seen of late: the large ones, largest first; how many in all, and since when."""

    whales: tuple[SeenTransaction, ...]
    sampled: int
    seconds: int


def fallbacks_to_see(now: datetime) -> tuple[Fallback[tuple[SeenTransaction, ...]], ...]:
    """The hundred newest with inputs and outputs, or ten with nothing but their total."""
    return (
        via(UNCONFIRMED_TXS, None, lambda txs: tuple(map(without_change, txs))),
        via(mempool.RECENT, None, lambda txs: tuple(total_only(tx, now) for tx in txs)),
        via(blockstream.RECENT, None, lambda txs: tuple(total_only(tx, now) for tx in txs)),
    )


def without_change(tx: UnconfirmedTx) -> SeenTransaction:
    """What is paid to an address that also pays is change, and did not move."""
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
    """These lists tell neither a time nor what is change: first seen means by us."""
    return SeenTransaction(tx.txid, now, tx.value_sat, tx.value_sat, tx.fee_sat, tx.vsize, change_removed=False)


def remember(history: TimeSeriesStore, seen: Iterable[SeenTransaction], now: datetime) -> WhaleWindow:
    """Add what was just seen to what was seen before, each transaction once, and look at all of it."""
    ring: Ring[SeenTransaction] = history.ring("btc_seen", keep_s=KEEP_S, most=MOST)
    for each in seen:
        known = ring.get(each.hash)
        if known is None or (each.change_removed and not known.change_removed):
            ring.put(each.hash, each, each.first_seen)
    rows = ring.rows(now)
    whales = sorted((row for row in rows if row.moved_sat >= LEAST_SAT), key=lambda row: (-row.moved_sat, row.hash))
    watched = (now - rows[0].first_seen).total_seconds() if rows else 0
    return WhaleWindow(tuple(whales), len(rows), max(0, int(watched)))


def bitcoin(sat: int) -> Decimal:
    return Decimal(sat) / SAT
