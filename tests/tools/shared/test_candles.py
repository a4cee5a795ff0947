"""Bitcoin's hours and days that are over."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.binance
import tools.simulated.coinbase
import tools.simulated.kraken  # noqa: F401 - serves
from tests.tools.desk import NOW, SimDesk
from tools.parsing.candles import Candle
from tools.shared.candles import DAY, HOUR, btc_days, btc_hours, completed
from tools.simulated import market
from toolserver.context.context import ToolContext
from toolserver.upstream.source import SourceAnswer, SourceError
from toolserver.world.model import World

AT = datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
VENUES = {
    "coinbase": set(),
    "kraken": {"Coinbase.candles"},
    "binance": {"Coinbase.candles", "Kraken.ohlc"},
}


def candle(start):
    return Candle(start, 1.0, 1.0, 1.0, 1.0, 1.0)


def hours(first, last, but=()):
    return [candle(AT.replace(minute=0) - n * HOUR) for n in range(first, last - 1, -1) if n not in but]


async def read(fallbacks, desk):
    ctx = ToolContext(desk, now=lambda: desk.world.time, sla_s=60)
    return await ctx.first("series", *fallbacks)


def test_the_open_hour_and_those_before_the_window_stay_out():
    found = completed(hours(30, 0), HOUR, 24, AT)

    assert len(found) == 24
    assert found[0].start == datetime(2027, 1, 14, 8, tzinfo=UTC)
    assert found[-1].start == datetime(2027, 1, 15, 7, tzinfo=UTC)


def test_a_missing_hour_is_neither_filled_nor_replaced_by_an_older_one():
    found = completed(hours(30, 0, but={5}), HOUR, 24, AT)

    assert len(found) == 23
    assert found[0].start == datetime(2027, 1, 14, 8, tzinfo=UTC)
    assert AT.replace(minute=0) - 5 * HOUR not in {c.start for c in found}


@given(st.lists(st.integers(0, 400), max_size=60), st.integers(1, 48), st.integers(0, 3599))
def test_completed_candles_are_given_ones_in_order_each_once_and_over(ages, count, second):
    at = AT.replace(minute=0) + timedelta(seconds=second)
    given_ = [candle(AT.replace(minute=0) - age * HOUR) for age in ages]
    starts = [c.start for c in completed(given_, HOUR, count, at)]

    assert starts == sorted(set(starts))
    end = AT.replace(minute=0)
    assert set(starts) == {c.start for c in given_ if end - count * HOUR <= c.start < end}


@pytest.mark.parametrize(("venue", "down"), VENUES.items())
async def test_every_venue_tells_the_closes_of_the_world(venue, down):
    found = await read(btc_hours(24), SimDesk(World(1, NOW), down))

    assert len(found) == 24
    for each in found:
        close = market.price(World(1, NOW), "BTC", each.start.timestamp() + 3600, venue)
        assert each.close == pytest.approx(close, abs=0.06)  # the coarsest of them writes one decimal


@pytest.mark.parametrize("down", VENUES.values())
async def test_days_begin_at_midnight_utc_and_the_day_of_today_is_not_among_them(down):
    found = await read(btc_days(30), SimDesk(World(1, NOW), down))

    assert [c.start.hour for c in found] == [0] * len(found)
    assert found[-1].start == datetime(2027, 1, 14, tzinfo=UTC)
    assert {b.start - a.start for a, b in pairwise(found)} == {DAY}
    assert len(found) == 30


async def test_an_hour_that_ended_after_the_candles_were_fetched_is_not_over_in_them():
    class Older(SimDesk):
        """Gives what was fetched a while before now."""

        async def fresh(self, source, query, *, sla_s):
            then = self.world.at(self.world.now - 240)
            value = (await SimDesk(then).fresh(source, query, sla_s=sla_s)).value
            return SourceAnswer(value, then.time, None, None)

    found = await read(btc_hours(24), Older(World(1, NOW)))  # it is 08:00, the candles are of 07:56

    assert found[-1].start == datetime(2027, 1, 15, 6, tzinfo=UTC)


async def test_candles_of_long_ago_are_no_answer():
    class Stopped(SimDesk):
        """Says that it has just fetched what is two days old."""

        async def fresh(self, source, query, *, sla_s):
            then = self.world.at(self.world.now - 2 * 86400)
            value = (await SimDesk(then).fresh(source, query, sla_s=sla_s)).value
            return SourceAnswer(value, self.world.time, None, None)

    with pytest.raises(SourceError):
        await read(btc_hours(24), Stopped(World(1, NOW)))


async def test_without_any_venue_there_is_nothing():
    with pytest.raises(SourceError):
        await read(btc_hours(24), SimDesk(World(1, NOW), {"*"}))
