"""Collect large bitcoin transfers among the newest transactions, and remember them for half an hour."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from tools.parsing.bitcoin import RecentTx
from tools.sources import bitcoin_core, blockstream, mempool
from tools.sources.bitcoin_core import NodeOutput, NodeTx, Outpoint
from tools.sources.blockchain_info import UNCONFIRMED_TXS, UnconfirmedTx
from toolserver import Fallback, FallbackReader, Ring, TimeSeriesStore, ToolContext, via

LEAST_SAT = 10 * 10**8
KEEP_S, MOST = 1800.0, 8000  # a hundred every 30 seconds are 6,000
SAT = Decimal(10**8)

SAMPLE = 100  # transactions that the node is asked for at a time, as many as Blockchain.com lists
MOST_INPUTS = 200  # of a transaction whose payers are looked up; more are a collection of an exchange

UNCONFIRMED_SOURCES = (
    bitcoin_core.WAITING_IDS,
    bitcoin_core.WAITING,
    bitcoin_core.OWNERS,
    UNCONFIRMED_TXS,
    mempool.RECENT,
    blockstream.RECENT,
)


class SeenTransaction(NamedTuple):
    """A transaction when it was first seen. `moved_sat` is what others were paid, or else all
    outputs with its own change.
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


def fallbacks_to_see(ctx: ToolContext) -> tuple[Fallback[tuple[SeenTransaction, ...]], ...]:
    """Return the fallbacks: a hundred that are new to your own node, the hundred newest of
    Blockchain.com, or ten with only their total.
    """
    now, history = ctx.now, ctx.history

    async def see_node(reading: FallbackReader) -> tuple[SeenTransaction, ...]:
        return await read_node(reading, history, now)

    return (
        see_node,
        via(UNCONFIRMED_TXS, None, lambda txs: tuple(map(without_change, txs))),
        via(mempool.RECENT, None, lambda txs: tuple(total_only(tx, now) for tx in txs)),
        via(blockstream.RECENT, None, lambda txs: tuple(total_only(tx, now) for tx in txs)),
    )


async def read_node(reading: FallbackReader, history: TimeSeriesStore, now: datetime) -> tuple[SeenTransaction, ...]:
    """Read a sample of the transactions that came to the node since the last reading, or at first of all that wait.

    A node lists ids without times, so new ones are those that it did not have before. The
    sample is random, as ids are. Payers are looked up for large transactions only. Raises
    SourceError.
    """
    ids = await reading.read(bitcoin_core.WAITING_IDS)
    memory: Ring[frozenset[str]] = history.ring("btc_node_ids", keep_s=KEEP_S, most=1)
    fresh = sorted(ids - (memory.get("ids") or frozenset()))[:SAMPLE]
    txs = await reading.read(bitcoin_core.WAITING, tuple(fresh)) if fresh else ()
    spends = tuple(each for tx in txs if _is_looked_up(tx) for each in tx.spends)
    owners: Sequence[NodeOutput | None] | None = None
    if spends:
        owners = await reading.attempt(bitcoin_core.OWNERS, spends)
    memory.put("ids", ids, now)
    owner_of = dict(zip(spends, owners or [None] * len(spends), strict=True))
    return tuple(from_node(tx, owner_of) for tx in txs)


def _is_looked_up(tx: NodeTx) -> bool:
    return sum(output.value_sat for output in tx.outputs) >= LEAST_SAT and len(tx.spends) <= MOST_INPUTS


def from_node(tx: NodeTx, owners: Mapping[Outpoint, NodeOutput | None]) -> SeenTransaction:
    """Return a node's transaction: without its change where all outputs that it spends are known."""
    total = sum(output.value_sat for output in tx.outputs)
    spent = [owners.get(each) for each in tx.spends]
    payers = {output.address for output in spent if output is not None}
    is_known = all(output is not None for output in spent)
    moved = sum(output.value_sat for output in tx.outputs if output.address is None or output.address not in payers)
    return SeenTransaction(
        hash=tx.txid,
        first_seen=tx.at,
        moved_sat=moved if is_known else total,
        total_sat=total,
        fee_sat=tx.fee_sat,
        vsize=tx.vsize,
        change_removed=is_known,
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
    """Return the transaction with its total: these lists have no time and do not mark change,
    so first seen means by us.
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
    whales = sorted((row for row in rows if is_large(row.moved_sat)), key=lambda row: (-row.moved_sat, row.hash))
    watched = (now - rows[0].first_seen).total_seconds() if rows else 0
    return WhaleWindow(tuple(whales), len(rows), max(0, int(watched)))


def is_large(moved_sat: int) -> bool:
    """Return True if a transaction pays enough to others to be listed."""
    return moved_sat >= LEAST_SAT


def bitcoin(sat: int) -> Decimal:
    return Decimal(sat) / SAT
