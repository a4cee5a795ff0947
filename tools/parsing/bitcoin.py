"""Numbers of the Bitcoin network, and the answers of the Esplora interface, which several explorers give."""

import math
import re
from typing import Any, NamedTuple

from tools.parsing.numbers import number, positive, within
from toolserver import read_rows

LOWEST, MOST_SAT = 800_000, 21_000_000 * 10**8
_TXID = re.compile(r"[0-9a-f]{64}")


class Fees(NamedTuple):
    """Satoshi per virtual byte that get a transaction into a block that soon; not always whole numbers."""

    fastest: float
    half_hour: float
    hour: float
    economy: float
    minimum: float


class MiningPower(NamedTuple):
    """What all miners do a second, and how hard that makes a block."""

    hashrate_eh_s: float
    difficulty: float


class Backlog(NamedTuple):
    """All transactions that wait for a block, as this node sees them."""

    waiting: int
    vsize: int
    total_fee_sat: int


class RecentTx(NamedTuple):
    """A transaction that just arrived. `value_sat` is all it pays, its own change included; it has no time."""

    txid: str
    fee_sat: int
    vsize: int
    value_sat: int


def txid(text: Any) -> str:
    """A transaction's name: 64 hex digits. Raises ValueError."""
    if not isinstance(text, str) or not _TXID.fullmatch(text):
        raise ValueError(f"not a transaction: {text!r:.80}")
    return text


def satoshi(value: Any) -> int:
    """A whole amount, not above what there will ever be. Raises ValueError."""
    amount = number(value)
    if amount != int(amount):
        raise ValueError(f"not whole: {amount!r}")
    return int(within(amount, 0, MOST_SAT))


def fee_rate(value: Any) -> float:
    return within(positive(value), 0, 1e6)


def parse_height(body: str, query: None) -> int:
    """The height of the chain, a number as text."""
    return int(within(int(body), LOWEST, 1e8))


def parse_backlog(body: Any, query: None) -> Backlog:
    """The counts. A mempool with nothing in it is not believed."""
    return Backlog(
        waiting=int(within(positive(body["count"]), 1, 1e8)),
        vsize=int(positive(body["vsize"])),
        total_fee_sat=satoshi(body["total_fee"]),
    )


def parse_recent(body: Any, query: None) -> tuple[RecentTx, ...]:
    """The last ten or so, newest first."""
    return read_rows(body, _recent)


def _recent(row: dict[str, Any]) -> RecentTx:
    return RecentTx(
        txid=txid(row["txid"]),
        fee_sat=satoshi(row["fee"]),
        vsize=math.ceil(positive(row["vsize"])),
        value_sat=satoshi(row["value"]),
    )
