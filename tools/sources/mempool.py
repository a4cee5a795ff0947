"""mempool.space: height, fees, mining power and waiting transactions of Bitcoin (no key; redistribution is barred).

https://mempool.space/docs/api/rest
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tools.shared.numbers import number, positive, within
from tools.sources.hosts import BTC_EXPLORERS
from toolserver.upstream.source import Get, Keys, Licence, Source

R = TypeVar("R")

API = "https://mempool.space/api"
NAME = "Mempool.network"  # five requests, one public name
LICENCE = Licence("no", "mempool.space", "https://mempool.space/terms-of-service")
LOWEST, MOST_SAT = 800_000, 21_000_000 * 10**8
HASHES_AN_EXAHASH = 10**18

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


def height_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/blocks/tip/height", decode="text")


def parse_height(body: str, query: None) -> int:
    """The height of the chain, a number as text."""
    return int(within(int(body), LOWEST, 1e8))


def fees_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/v1/fees/recommended")


def parse_fees(body: Any, query: None) -> Fees:
    names = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
    return Fees(*(fee_rate(body[name]) for name in names))


def power_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/v1/mining/hashrate/3d")


def parse_power(body: Any, query: None) -> MiningPower:
    """Today's estimate; hashes a second are more than 2**53."""
    hashrate = positive(body["currentHashrate"]) / HASHES_AN_EXAHASH
    return MiningPower(within(hashrate, 1e-6, 1e6), positive(body["currentDifficulty"]))


def backlog_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/mempool")


def parse_backlog(body: Any, query: None) -> Backlog:
    """The counts. A mempool with nothing in it is not believed."""
    return Backlog(
        waiting=int(within(positive(body["count"]), 1, 1e8)),
        vsize=int(positive(body["vsize"])),
        total_fee_sat=satoshi(body["total_fee"]),
    )


def recent_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/mempool/recent")


def parse_recent(body: Any, query: None) -> tuple[RecentTx, ...]:
    """The last ten or so, newest first."""
    return tuple(
        RecentTx(
            txid=txid(row["txid"]),
            fee_sat=satoshi(row["fee"]),
            vsize=math.ceil(positive(row["vsize"])),
            value_sat=satoshi(row["value"]),
        )
        for row in body
    )


def _source(
    request: Callable[[None, Keys], Get], parse: Callable[[Any, None], R], *, fresh_s: float = 30
) -> Source[None, R]:
    return Source(
        NAME,
        request,
        parse,
        licence=LICENCE,
        hosts=BTC_EXPLORERS,
        fresh_s=fresh_s,
        keep_s=86400,
        timeout_s=6,
    )


HEIGHT = _source(height_request, parse_height)
FEES = _source(fees_request, parse_fees)
POWER = _source(power_request, parse_power, fresh_s=3600)
BACKLOG = _source(backlog_request, parse_backlog)
RECENT = _source(recent_request, parse_recent)
