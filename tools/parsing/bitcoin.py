"""Read numbers of the Bitcoin network, and the replies of the Esplora interface that several explorers share."""

import math
import re
from typing import Any, NamedTuple

from tools.parsing.fields import number, positive, within
from toolserver import read_rows

LOWEST, MOST_SAT = 800_000, 21_000_000 * 10**8
_TXID = re.compile(r"[0-9a-f]{64}")


class Fees(NamedTuple):
    """Fees in satoshi per virtual byte that get a transaction into a block within each period.

    `is_whole`: the publisher rounded them to whole numbers, so that the exact ones are not known.
    """

    fastest: float
    half_hour: float
    hour: float
    economy: float
    minimum: float
    is_whole: bool = False


class MiningPower(NamedTuple):
    """The hash rate of all miners per second as a mean of some days, and the present difficulty of a block."""

    hashrate_eh_s: float
    difficulty: float
    mean_days: int


class Backlog(NamedTuple):
    """All transactions that wait for a block, as this node sees them."""

    waiting: int
    vsize: int
    total_fee_sat: int


class RecentTx(NamedTuple):
    """A transaction that just arrived. `value_sat` is all it pays, including its own change; it has no timestamp."""

    txid: str
    fee_sat: int
    vsize: int
    value_sat: int


def txid(text: Any) -> str:
    """Return a transaction id of 64 hex digits. Raises ValueError for any other text."""
    if not isinstance(text, str) or not _TXID.fullmatch(text):
        raise ValueError(f"not a transaction: {text!r:.80}")
    return text


def satoshi(value: Any) -> int:
    """Return a whole amount of satoshi, at most the final supply of bitcoin. Raises ValueError."""
    amount = number(value)
    if amount != int(amount):
        raise ValueError(f"not whole: {amount!r}")
    return int(within(amount, 0, MOST_SAT))


def fee_rate(value: Any) -> float:
    return within(positive(value), 0, 1e6)


def parse_height(body: str, query: None) -> int:
    """Return the height of the chain from a number written as text."""
    return int(within(int(body), LOWEST, 1e8))


def parse_backlog(body: Any, query: None) -> Backlog:
    """Return the counts of the mempool. An empty mempool is refused as implausible."""
    return Backlog(
        waiting=int(within(positive(body["count"]), 1, 1e8)),
        vsize=int(positive(body["vsize"])),
        total_fee_sat=satoshi(body["total_fee"]),
    )


def parse_recent(body: Any, query: None) -> tuple[RecentTx, ...]:
    """Return the last ten or so transactions, newest first."""
    return read_rows(body, _recent)


def _recent(row: dict[str, Any]) -> RecentTx:
    return RecentTx(
        txid=txid(row["txid"]),
        fee_sat=satoshi(row["fee"]),
        vsize=math.ceil(positive(row["vsize"])),
        value_sat=satoshi(row["value"]),
    )
