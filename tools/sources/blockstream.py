"""Blockstream's Bitcoin explorer: height, fee estimates and waiting transactions (no key; terms unclear).

https://github.com/Blockstream/esplora/blob/master/API.md
"""

from collections.abc import Callable
from typing import Any, TypeVar

from tools.sources.hosts import BTC_EXPLORERS
from tools.sources.mempool import Fees, fee_rate, parse_backlog, parse_height, parse_recent
from toolserver.errors import SourceEmpty
from toolserver.upstream.source import Get, Keys, Licence, Source

R = TypeVar("R")

API = "https://blockstream.info/api"
NAME = "Blockstream.network"  # four requests, one public name
LICENCE = Licence("unclear", "Blockstream", "https://blockstream.com/terms/")
TARGETS = ("1", "3", "6", "144", "1008")  # blocks: next, half an hour, an hour, a day, a week


def height_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/blocks/tip/height", decode="text")


def fees_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/fee-estimates")


def parse_fees(body: Any, query: None) -> Fees:
    """Estimates by blocks to wait; a node that has just started has none."""
    if not body:
        raise SourceEmpty("no estimates")
    return Fees(*(fee_rate(body[target]) for target in TARGETS))


def backlog_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/mempool")


def recent_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/mempool/recent")


def _source(request: Callable[[None, Keys], Get], parse: Callable[[Any, None], R]) -> Source[None, R]:
    return Source(
        NAME,
        request,
        parse,
        licence=LICENCE,
        hosts=BTC_EXPLORERS,
        fresh_s=30,
        keep_s=86400,
        timeout_s=6,
    )


HEIGHT = _source(height_request, parse_height)
FEES = _source(fees_request, parse_fees)
BACKLOG = _source(backlog_request, parse_backlog)
RECENT = _source(recent_request, parse_recent)
