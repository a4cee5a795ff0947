"""Read height, fees, mining power and waiting transactions of Bitcoin from mempool.space (no key).

Redistribution is barred.

https://mempool.space/docs/api/rest
"""

from collections.abc import Callable
from typing import Any, TypeVar

from tools.parsing.bitcoin import Fees, MiningPower, fee_rate, parse_backlog, parse_height, parse_recent
from tools.parsing.fields import positive, within
from tools.sources.hosts import BTC_EXPLORERS, HOUR
from toolserver import Get, Licence, Source

R = TypeVar("R")

API = "https://mempool.space/api"
NAME = "Mempool.network"  # five requests, one public name
LICENCE = Licence("no", "mempool.space", "https://mempool.space/terms-of-service")
HASHES_AN_EXAHASH = 10**18


def parse_fees(body: Any, query: None) -> Fees:
    names = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
    return Fees(*(fee_rate(body[name]) for name in names))


def parse_power(body: Any, query: None) -> MiningPower:
    """Return today's estimate. The hash rate exceeds 2**53."""
    hashrate = positive(body["currentHashrate"]) / HASHES_AN_EXAHASH
    return MiningPower(within(hashrate, 1e-6, 1e6), positive(body["currentDifficulty"]))


def _source(request: Get, parse: Callable[[Any, None], R], **more: Any) -> Source[None, R]:
    return Source(
        NAME,
        request,
        parse,
        licence=LICENCE,
        hosts=BTC_EXPLORERS,
        timeout_s=6,
        **{"fresh_s": 30} | more,
    )


HEIGHT = _source(
    Get(f"{API}/blocks/tip/height", decode="text"),
    parse_height,
    ageless="a height carries no timestamp, and the next block may be an hour away",
)
FEES = _source(
    Get(f"{API}/v1/fees/recommended"),
    parse_fees,
    ageless="fees carry no timestamp and do not change while few transactions wait",
)
POWER = _source(
    Get(f"{API}/v1/mining/hashrate/3d"),
    parse_power,
    fresh_s=HOUR,
    ageless="an estimate over three days, without a timestamp",
)
BACKLOG = _source(Get(f"{API}/mempool"), parse_backlog, moves=lambda backlog: backlog)
RECENT = _source(Get(f"{API}/mempool/recent"), parse_recent, moves=lambda recent: recent)
