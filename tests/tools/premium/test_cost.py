"""How long a premium call takes: nothing waits for what it could have beside it, and little is computed."""

import logging
import time
from collections import Counter
from collections.abc import Iterator

import anyio
import pytest

from tests.requirements import proves
from tests.specified import PREMIUM
from tests.tools.faulty.skipping import SkippingLoop
from tests.tools.premium.sections import beside, shown
from tests.tools.premium.simulated_time import Exchange, Timed, counter
from tests.work import counted
from toolserver.calls.response_cache import AnswerTable

LATENCY_S = 0.4
NEEDS_THE_HEAD = b"eth_getBlockByNumber"  # a block can only be asked for by its number
PARALLEL = {
    "earthquake.usgs.gov": 2,
    "api.exchange.coinbase.com": 2,
    "mempool.space": 2,
    "ethereum-rpc.publicnode.com": 3,
    "hacker-news.firebaseio.com": 5,
}
"""Requests at once, of the hosts that are asked more than once; all of them fit into a burst."""

WHOLE = {"briefing": {"history": "24h"}, "macro": {"history": "30d"}, "crypto-deep": {"history": "30d"}}
WARM_CALLS = {
    "briefing": 14_000,
    "macro": 22_000,
    "crypto-deep": 16_000,
    "sentiment": 28_000,
    "world-deltas": 11_000,
    "agent-context": 62_000,
    "correlation-matrix": 26_000,
    "whales": 10_000,
    "exchange-flows": 8_000,
    "code-host-velocity": 14_000,
}
"""Of functions, to compose an answer anew: a third more than now, where each takes less than 8 ms of CPU."""

HANGS_S = 60.0


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def host(exchange: Exchange) -> str:
    return exchange.url.partition("/")[0]


def slowest_s(upstreams: Timed) -> float:
    """How long the slowest host takes for its own questions, all asked at once, as many at a time as it allows."""
    hosts: dict[str, list[Exchange]] = {}
    for exchange in upstreams.exchanges:
        hosts.setdefault(host(exchange), []).append(exchange)
    return max(last_answer_s(name, exchanges) for name, exchanges in hosts.items())


def last_answer_s(name: str, exchanges: list[Exchange]) -> float:
    dependent = sum(NEEDS_THE_HEAD in exchange.body for exchange in exchanges)
    ready = sorted([0.0] * (len(exchanges) - dependent) + [LATENCY_S] * dependent)
    free, ended = [0.0] * PARALLEL.get(name, 1), 0.0
    for asked_s in ready:
        free.sort()
        free[0] = ended = max(asked_s, free[0]) + LATENCY_S
    return ended


@proves("pro.cold")
@pytest.mark.parametrize("name", PREMIUM)
async def test_on_cold_sources_a_call_takes_as_long_as_its_slowest_source(name):
    async with counter(LATENCY_S) as c:
        sale = await c.buy(PREMIUM[name].tool, **WHOLE.get(name, {}))
        first = {}
        for exchange in sorted(c.upstreams.exchanges, key=lambda each: each.began):
            first.setdefault(host(exchange), exchange.began)

    assert sale.charged == PREMIUM[name].credits
    assert set(first.values()) == {0.0}  # every host is asked at once: nobody waits for another
    assert sale.took_s <= slowest_s(c.upstreams) + 0.05


@proves("pro.once")
async def test_the_ten_at_once_ask_each_source_once():
    sales = {}
    async with counter(LATENCY_S) as c:

        async def buy(name: str) -> None:
            sales[name] = await c.buy(PREMIUM[name].tool, **WHOLE.get(name, {}))

        async with anyio.create_task_group() as tasks:
            for name in PREMIUM:
                tasks.start_soon(buy, name)

    asked = Counter((exchange.url, exchange.body) for exchange in c.upstreams.exchanges)
    assert {name: sale.charged for name, sale in sales.items()} == {n: row.credits for n, row in PREMIUM.items()}
    assert [question for question, times in asked.items() if times > 1] == []
    assert len(asked) > 50
    assert c.upstreams.unmatched == []


@proves("pro.slow-source")
@pytest.mark.parametrize(
    ("name", "slow", "section"),
    [
        ("briefing", "gamma-api.polymarket.com", "sections.predictions"),
        ("briefing", "ll.thespacedevs.com", "sections.humans_in_space"),
        ("macro", "api.frankfurter.dev", "forex"),
        ("crypto-deep", "api.coingecko.com", "coins_top50"),
        ("sentiment", "cointelegraph.com", "trending"),
        ("world-deltas", "hn.algolia.com", "tech_news_story"),
        ("agent-context", "api.alternative.me", "context.markets.crypto_fear_greed"),
        ("correlation-matrix", "fred.stlouisfed.org", "assets.USD_INDEX"),
        ("whales", "blockchain.info", "btc_whales_unconfirmed"),
        ("exchange-flows", "api.exchange.coinbase.com", "spot_eth_usd"),
        ("code-host-velocity", "q=topic", "ai_ml_repos_active_30d"),
    ],
)
async def test_a_source_that_hangs_delays_no_other_and_the_call_not_beyond_its_deadline(name, slow, section):
    async with counter(slow={slow: HANGS_S}) as c:
        deadline_s = c.engine.registry[PREMIUM[name].tool].deadline_s
        sale = await c.buy(PREMIUM[name].tool, **WHOLE.get(name, {}))

    assert sale.took_s < deadline_s
    assert sale.charged == PREMIUM[name].credits
    for other in beside(name, section) if name != "code-host-velocity" else ["trending_repos"]:
        assert shown(sale.body, name, other) is not None, other


@proves("pro.slow-source")
@pytest.mark.parametrize("name", PREMIUM)
async def test_when_all_sources_hang_the_call_ends_in_time_and_is_not_sold(name):
    async with counter(HANGS_S) as c:
        before = await c.engine.ledger.balance("svc_live_" + "a" * 64)
        with pytest.raises(Exception, match="No source of this payload answered"):
            await c.buy(PREMIUM[name].tool, **WHOLE.get(name, {}))

        assert c.clock.passed_s <= c.engine.registry[PREMIUM[name].tool].deadline_s + 0.05
        assert await c.engine.ledger.balance("svc_live_" + "a" * 64) == before


@proves("pro.cost")
@pytest.mark.slow("many compositions")
@pytest.mark.parametrize("name", PREMIUM)
async def test_a_call_on_warm_sources_takes_little_work(name):
    row, arguments = PREMIUM[name], WHOLE.get(name, {})
    async with counter() as c:
        await c.buy(row.tool, **arguments)
        c.engine.answers.table = AnswerTable()  # it is composed anew, of what the sources said
        began = time.process_time()
        await c.buy(row.tool, **arguments)
        spent_ms = 1000 * (time.process_time() - began)
        c.engine.answers.table = AnswerTable()
        with counted() as work:
            await c.buy(row.tool, **arguments)

    print(f"\n{name}: {work.calls} calls of functions; {spent_ms:.1f} ms of CPU, uncounted")
    assert work.calls < WARM_CALLS[name]
