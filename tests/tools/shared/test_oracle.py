"""The last day and the candles of a coin, from the rounds of a feed."""

from datetime import UTC, datetime, timedelta

import pytest

import tools.simulated.ethereum  # noqa: F401 - serves
from tests.tools.desk import NOW, SimDesk
from tools.shared.candles import DAY, HOUR, btc_days, btc_hours
from tools.shared.oracle import HEARTBEAT, MOST_CALLS, make_candles, summarize_day
from tools.simulated import market
from tools.sources.chainlink import Round
from toolserver.context.context import ToolContext
from toolserver.upstream.source import SourceError
from toolserver.world.model import World

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
WORLD = World(1, NOW)
EXCHANGES = {"Coinbase.candles", "Kraken.ohlc", "Binance.klines"}


def rounds(*prices, every=HOUR, end=AT):
    """Rounds with these prices, the last at `end`."""
    return [Round("BTC-USD", p, end - (len(prices) - 1 - n) * every, n + 1) for n, p in enumerate(prices)]


async def read(fallbacks, desk):
    ctx = ToolContext(desk, now=lambda: desk.world.time, sla_s=60)
    return await ctx.first("series", *fallbacks)


def test_the_day_is_against_the_price_in_force_24_hours_ago():
    hourly = rounds(*range(100, 126))  # 25 hours ago: 100; 24 hours ago: 101
    assert summarize_day(hourly, AT + timedelta(minutes=59)) == (23.76, 125, 101)
    assert summarize_day(hourly, AT) == (23.76, 125, 101)


def test_without_a_price_in_time_a_day_ago_there_is_no_day():
    assert summarize_day(rounds(*range(100, 120)), AT) is None
    late = [each for each in rounds(*range(100, 130)) if AT - each.updated_at not in (24 * HOUR, 25 * HOUR)]
    assert summarize_day(late, AT) is None


def test_an_hour_without_a_round_has_the_price_in_force():
    quiet = [Round("BTC-USD", 100.0, AT - HOUR - timedelta(minutes=3), 1), Round("BTC-USD", 104.0, AT, 2)]
    late = Round("BTC-USD", 103.0, AT + HOUR - timedelta(minutes=1), 3)
    found = make_candles([*quiet, late], AT - HOUR, HOUR, 2)
    assert [tuple(candle) for candle in found] == [
        (AT - HOUR, 100, 104, 100, 104, None),
        (AT, 104, 104, 103, 103, None),
    ]


def test_an_hour_for_which_the_feed_was_late_is_left_out():
    stopped = rounds(*range(100, 104), end=AT - 3 * HOUR)
    found = make_candles(stopped, AT - 6 * HOUR, HOUR, 6)
    assert [candle.start for candle in found] == [AT - n * HOUR for n in (6, 5, 4, 3)][: len(found)]
    assert found[-1].start + HOUR - stopped[-1].updated_at <= HEARTBEAT


@pytest.mark.parametrize(("fallbacks", "span", "count"), [(btc_hours, HOUR, 24), (btc_days, DAY, 30)])
async def test_where_no_exchange_answers_the_candles_are_those_of_the_feed(fallbacks, span, count):
    found = await read(fallbacks(count), SimDesk(WORLD, EXCHANGES))

    assert len(found) == count
    assert {candle.start.timestamp() % span.total_seconds() for candle in found} == {0}
    for each in found:
        start, end = each.start.timestamp(), each.start.timestamp() + span.total_seconds()
        prices = [market.price(WORLD, "BTC", at) for at in range(int(start), int(end) + 1, 1200)]
        assert each.open == pytest.approx(prices[0], abs=1e-6)
        assert each.close == pytest.approx(prices[-1], abs=1e-6)
        assert (each.high, each.low) == (pytest.approx(max(prices)), pytest.approx(min(prices)))
        assert each.volume is None


async def test_a_month_takes_a_dozen_calls_and_a_day_one_or_two():
    for fallbacks, most in [(btc_hours(24), 2), (btc_days(30), 13)]:
        desk = SimDesk(WORLD, EXCHANGES)
        await read(fallbacks, desk)
        calls = [name for name, _ in desk.asked if name == "Chainlink.round_history"]
        assert 1 <= len(calls) <= most < MOST_CALLS


async def test_without_the_rounds_there_are_no_candles():
    with pytest.raises(SourceError):
        await read(btc_hours(24), SimDesk(WORLD, {*EXCHANGES, "Chainlink.round_history"}))
