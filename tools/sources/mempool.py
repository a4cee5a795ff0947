"""Read height, fees, mining power and waiting transactions of Bitcoin from mempool.space, or your own instance of it.

The software is free (AGPL), runs beside a Bitcoin node, and has the same paths: MEMPOOL_URL is its address.

https://mempool.space/docs/api/rest
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from tools.parsing.bitcoin import Fees, MiningPower, fee_rate, parse_backlog, parse_height, parse_recent
from tools.parsing.fields import positive, within
from tools.sources.hosts import BTC_EXPLORERS, HOUR
from toolserver import Get, Keys, KeyTerms, Licence, Source

R = TypeVar("R")
Form = Literal["json", "text"]

PUBLIC = "https://mempool.space"
KEY = "MEMPOOL_URL"
NAME = "Mempool.network"  # five requests, one public name
# The terms of 10 September 2026 say nothing about reuse or redistribution; there are limits, bans and paid plans.
LICENCE = Licence("unclear", "mempool.space", "https://mempool.space/terms-of-service")
TERMS = {KEY: KeyTerms(Licence("yes", "mempool.space"), alone=True)}
HASHES_AN_EXAHASH = 10**18
MEAN_DAYS = 7


def parse_fees(body: Any, query: None) -> Fees:
    """Return the fees with up to three decimals."""
    names = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
    fastest, half_hour, hour, economy, minimum = (fee_rate(body[name]) for name in names)
    return Fees(fastest, half_hour, hour, economy, minimum)


def parse_whole_fees(body: Any, query: None) -> Fees:
    """Return the recommended fees: whole, at least 1."""
    return parse_fees(body, query)._replace(is_whole=True)


def parse_power(body: Any, query: None) -> MiningPower:
    """Return the mean of the past 1008 blocks, about a week. The hash rate exceeds 2**53."""
    hashrate = positive(body["currentHashrate"]) / HASHES_AN_EXAHASH
    return MiningPower(within(hashrate, 1e-6, 1e6), positive(body["currentDifficulty"]), MEAN_DAYS)


def _source(path: str, parse: Callable[[Any, None], R], decode: Form = "json", **more: Any) -> Source[None, R]:
    def request(query: None, keys: Keys) -> Get:
        if KEY in keys:
            return Get(f"{keys[KEY].rstrip('/')}/api/{path}", decode=decode, under=KEY)
        return Get(f"{PUBLIC}/api/{path}", decode=decode)

    request.__qualname__ = f"mempool {path}"  # sources of one name share answers if their requests have one name
    return Source(
        NAME,
        request,
        parse,
        licence=LICENCE,
        terms=TERMS,
        hosts=BTC_EXPLORERS,
        timeout_s=6,
        **{"fresh_s": 30} | more,
    )


HEIGHT = _source(
    "blocks/tip/height",
    parse_height,
    decode="text",
    ageless="a height carries no timestamp, and the next block may be an hour away",
)
FEES = _source(
    "v1/fees/precise",
    parse_fees,
    ageless="fees carry no timestamp and do not change while few transactions wait",
)
WHOLE_FEES = _source(
    "v1/fees/recommended",
    parse_whole_fees,
    ageless="fees carry no timestamp and do not change while few transactions wait",
)
POWER = _source(
    "v1/mining/hashrate/3d",
    parse_power,
    fresh_s=HOUR,
    ageless="a mean over a week, without a timestamp",
)
BACKLOG = _source("mempool", parse_backlog, moves=lambda backlog: backlog)
RECENT = _source("mempool/recent", parse_recent, moves=lambda recent: recent)
