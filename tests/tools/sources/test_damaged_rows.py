"""Every parser of a list, with one, ten and half of its rows damaged in eight ways.

A damaged row is left out and counted, or kept without the damaged member; all others are as they were. No number
appears that the sound body does not hold. Above the share of the source the body is rejected. The fast set damages
two members of each source in one way each, other ones for each source.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pytest

from tests.size import EVERYTHING, sized
from tests.tools.damage import KINDS, Rows, rows_of
from tests.tools.desk import NOW, fetch
from tools.parsing.fields import LARGEST
from tools.sources.emsc import EmscQuery
from tools.sources.gdacs import EventQuery
from tools.sources.github import NEW, RepoQuery
from tools.sources.hackernews_algolia import Recent
from toolserver.registry.registry import Registry
from toolserver.upstream.decode import ALWAYS_ALLOWED, count_rows, parse_body
from toolserver.upstream.source import Connect, Get, Source, SourceError
from toolserver.world.model import World
from toolserver.world.providers import load_providers

load_providers()
WORLD = World(1, NOW)
MEMBERS = sized(3, fast=2, long=60)
MOST_ROWS = sized(60_000, fast=60_000, long=10**9)
THEN = datetime.fromtimestamp(NOW, UTC)
KEYS = {"FRED_API_KEY": "sim-1", "FIRMS_MAP_KEY": "sim-1", "GOOGLE_NEWS": "yes"}
QUERIES = {
    "Solana.block_time": 500_000_000,  # no probe: a slot is good with the epoch's answer only
    "EMSC.earthquakes_query": EmscQuery(2.5, 24, THEN),
    "GDACS.event_list": EventQuery("TC;FL;VO;WF;DR", "Green", THEN.date() - timedelta(days=5), THEN.date()),
    "GitHub.search_repositories": RepoQuery(NEW, THEN.date() - timedelta(days=7)),
    "HackerNewsAlgolia.stories_24h": Recent(THEN),
    "Ethereum.full_block": "latest",
}
"""Of sources whose question names a time."""


class Case(NamedTuple):
    """A source that reads rows, a query of it, the world's body, and what is read of it when it is sound."""

    source: Source[Any, Any]
    query: Any
    request: Get
    rows: Rows
    sound: Any
    seen: int
    sound_items: Counter[str]  # each item as it is printed, how often; counted once, compared with each damaged body's
    sound_numbers: set[float]

    def read(self, body: bytes) -> tuple[Any, int]:
        """The result of a body and how many rows were left out. Raises SourceError."""
        with count_rows(self.source.unreadable_share) as count:
            value = parse_body(self.source, self.request, self.query, body)
        return value, count.dropped

    @property
    def items_a_row(self) -> int:
        """How many items of the result one row of the body may make."""
        return 2 * math.ceil(max(self.seen / self.rows.total, len(items(self.sound)) / self.seen)) - 1

    @property
    def allowed(self) -> float:
        return max(ALWAYS_ALLOWED, self.source.unreadable_share * self.seen)


SOURCES: defaultdict[str, list[Source[Any, Any]]] = defaultdict(list)
for operation in Registry.load("tools"):
    for source in operation.sources:
        SOURCES[f"{source.name} {source.parse.__name__}"].append(source)
ONE_THING = frozenset(
    {
        "AWS.current_events parse",
        "Azure.status_feed parse",
        "Binance.ticker_24h parse",
        "BitcoinCore.mempool parse_ids",  # replies to a batch of calls, all of which have to be there
        "BitcoinCore.mempool parse_owners",
        "BitcoinCore.mempool parse_transactions",
        "BitcoinCore.network parse_fees",
        "BitcoinCore.network parse_state",
        "BlockchainInfo.stats parse_stats",
        "Blockscout.gas_prices parse",
        "Blockstream.network parse_backlog",
        "Blockstream.network parse_fees",
        "Blockstream.network parse_height",
        "CNBC.quotes parse",
        "Cboe.delayed_quote parse_quote",
        "Chainlink.price_feed parse",
        "CoinMarketCap.fear_greed parse",
        "Coinbase.product_stats parse_stats",
        "CurrencyApi.usd_rates parse",
        "Ethereum.block_number parse_number",
        "Ethereum.fee_history parse_fees",
        "Ethereum.full_block parse_header",
        "Etherscan.gas_oracle parse",
        "Finnhub.quote parse",
        "GoldApi.xau_spot parse",
        "HackerNews.item parse_item",
        "HuggingFace.models_liked_7d parse_last_change",
        "InternetDB.host parse",
        "Kraken.ticker parse",
        "Mempool.network parse_backlog",
        "Mempool.network parse_fees",
        "Mempool.network parse_height",
        "Mempool.network parse_power",
        "Mempool.network parse_whole_fees",
        "OpenMeteo.air_quality parse_air",
        "Probe.tcp_connect parse",
        "Slack.current_status parse",
        "Solana.block_time parse_time",
        "Solana.epoch_info parse_epoch",
        "Statuspage.Anthropic parse",
        "Statuspage.Atlassian parse",
        "Statuspage.Cloudflare parse",
        "Statuspage.Datadog parse",
        "Statuspage.Discord parse",
        "Statuspage.GitHub parse",
        "Statuspage.Reddit parse",
        "Statuspage.Stripe parse",
        "Statuspage.Vercel parse",
        "Statuspage.Zoom parse",
        "Steam.store_items parse_names",
        "Yahoo.spark parse_spark",
    }
)
"""What is read of these has no rows, or one."""


@cache
def case_of(name: str) -> Case | None:
    """None where no rows are read. It takes a moment: the whole body is made and read."""
    return next((case for source in SOURCES[name] if (case := _case(source)) is not None), None)


def _case(source: Source[Any, Any]) -> Case | None:
    query = QUERIES[source.name] if source.name in QUERIES else source.make_probe(THEN)
    plan = source.plan(query, KEYS)
    request = plan if isinstance(plan, Get) or plan is None else plan[0]
    if request is None or isinstance(request, Connect):
        return None
    body = fetch(WORLD, request).body
    with count_rows(source.unreadable_share) as count:
        sound = parse_body(source, request, query, body)
    assert count.dropped == 0, source.name
    if count.seen <= 1:
        return None
    printed = Counter(map(repr, items(sound)))
    return Case(source, query, request, rows_of(body), sound, count.seen, printed, numbers(sound))


def items(value: Any) -> list[Any]:
    """What a result lists."""
    if isinstance(value, Mapping):
        return list(value.items())
    lists = [each for each in value if isinstance(each, tuple | Mapping)] if hasattr(value, "_fields") else [value]
    return [item for each in lists for item in (each.items() if isinstance(each, Mapping) else each)]


def numbers(value: Any) -> set[float]:
    """All numbers inside a result."""
    if isinstance(value, bool):
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    if isinstance(value, Mapping):
        return numbers([*value.values()])
    if isinstance(value, tuple | list | frozenset):
        return set().union(*map(numbers, value)) if value else set()
    return set()


def complaints(case: Case, many: int, member: str, kind: str) -> list[str]:
    """What is wrong with what is read of a damaged body: nothing, it is to be hoped."""
    body = case.rows.damage(many, member, kind)
    hit = len(case.rows.chosen(many))
    try:
        value, dropped = case.read(body)
    except SourceError as error:
        may_be = hit > ALWAYS_ALLOWED or case.seen - hit < max(2, case.source.least)
        return [] if may_be else [f"rejected: {error}"]
    found = []
    if dropped > max(case.allowed, 2 * ALWAYS_ALLOWED):
        found.append(f"{dropped} of {case.seen} rows are left out, {case.allowed:g} may be")
    if not is_list(case.sound):
        return found
    read = [(repr(item), item) for item in items(value)]
    lost = (case.sound_items - Counter(printed for printed, _ in read)).total()
    if lost > hit * case.items_a_row:
        found.append(f"{lost} rows changed where {hit} are damaged")
    changed = [item for printed, item in read if printed not in case.sound_items]
    written = body.decode("utf-8", "replace")
    strange = {n for n in numbers(changed) - case.sound_numbers if n > LARGEST or f"{n:g}" not in written}
    if strange:
        found.append(f"numbers from nowhere: {sorted(strange)[:3]}")
    return found


def is_list(value: Any) -> bool:
    """Whether a result is made of rows, and not of one figure computed from them."""
    return isinstance(value, Mapping) or (isinstance(value, tuple) and len(items(value)) > 2)


def test_every_source_that_lists_something_is_tried():
    assert len(SOURCES.keys() - ONE_THING) >= 80
    assert SOURCES.keys() >= ONE_THING


def damages(name: str, case: Case) -> Iterator[tuple[int, str, str]]:
    """How many rows, which member, in which way: all of them, or two of each source, other ones for each.

    A run of everything reads at most MOST_ROWS rows of a source: a long body is damaged in fewer ways, evenly spread.
    """
    members = case.rows.members[:: max(1, len(case.rows.members) // MEMBERS)]
    every = list(product((1, 10, case.rows.total // 2), members, KINDS))
    if EVERYTHING:
        step = math.ceil(case.rows.total * len(every) / MOST_ROWS)
        return iter(every[:: step | 1])  # odd, because there are eight ways: each of them is among those that are left
    place = sorted(SOURCES).index(name)
    return (every[(place * 7 + n * len(every) // 2) % len(every)] for n in range(2))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(SOURCES.keys() - ONE_THING))
def test_a_damaged_row_is_left_out_and_the_others_are_as_they_were(name):
    case = case_of(name)
    assert case is not None, "it reads no rows: it belongs to ONE_THING"
    wrong = [
        f"{many} rows, {member}, {kind}: {complaint}"
        for many, member, kind in damages(name, case)
        for complaint in complaints(case, many, member, kind)
    ]

    assert wrong == []


@pytest.mark.slow("the whole body of each source that has one row is made")
@pytest.mark.parametrize("name", sorted(ONE_THING))
def test_what_is_not_damaged_here_has_one_row(name):
    assert case_of(name) is None, "it reads rows: it does not belong to ONE_THING"
