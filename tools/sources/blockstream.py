"""Read Blockstream's Bitcoin explorer: height, fee estimates and waiting transactions (no key; terms unclear).

https://github.com/Blockstream/esplora/blob/master/API.md
"""

from collections.abc import Callable
from typing import Any, TypeVar

from tools.parsing.bitcoin import Fees, fee_rate, parse_backlog, parse_height, parse_recent
from tools.sources.hosts import BTC_EXPLORERS
from toolserver import Get, Licence, Source, SourceEmpty

R = TypeVar("R")

API = "https://blockstream.info/api"
NAME = "Blockstream.network"  # four requests, one public name
LICENCE = Licence("unclear", "Blockstream", "https://blockstream.com/terms/")
TARGETS = ("1", "3", "6", "144", "1008")  # blocks: next, half an hour, an hour, a day, a week


def parse_fees(body: Any, query: None) -> Fees:
    """Return the fee estimates by blocks to wait; a node that has just started has none."""
    if not body:
        raise SourceEmpty("no estimates")
    fastest, half_hour, hour, day, week = (fee_rate(body[target]) for target in TARGETS)
    return Fees(fastest, half_hour, hour, day, week)


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
    Get(f"{API}/fee-estimates"),
    parse_fees,
    ageless="fees carry no timestamp and do not change while few transactions wait",
)
BACKLOG = _source(Get(f"{API}/mempool"), parse_backlog, moves=lambda backlog: backlog)
RECENT = _source(Get(f"{API}/mempool/recent"), parse_recent, moves=lambda recent: recent)
