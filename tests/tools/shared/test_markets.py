"""Gold, oil and gas, the large index funds, the VIX and the dollar: every fallback of every chain."""

import datetime as dt

import pytest

import tools.simulated.cboe
import tools.simulated.datahub
import tools.simulated.ethereum
import tools.simulated.federal_reserve
import tools.simulated.fred
import tools.simulated.gold_api
import tools.simulated.kraken
import tools.simulated.stocks
import tools.simulated.yahoo  # noqa: F401 - they serve
from tests.tools.desk import NOW, SimDesk
from tools.parsing.series import series
from tools.parsing.stock_quotes import StockQuote
from tools.shared.markets import (
    IndexQuote,
    daily_chart,
    dollar_index_fallbacks,
    from_closes,
    from_quote,
    gas_fallbacks,
    gold_fallbacks,
    market_fallbacks,
    oil_fallbacks,
    oil_series_fallbacks,
    vix_fallbacks,
)
from tools.simulated import datahub, gold_api, macro, market, stocks
from toolserver.context.context import ToolContext
from toolserver.upstream.source import SourceError
from toolserver.world.model import Edits, World

WORLD = World(1, NOW)
TODAY = dt.date(2027, 1, 15)
FRED = {"FRED.graph_csv"}
KEY = {"FRED_API_KEY": "sim-1"}
LAST_COPY = dt.date(2027, 1, 8)


async def first(fallbacks, *, down=(), keys=None, forms=None, world=WORLD):
    desk = SimDesk(world, set(down), forms or {}, keys or {})
    return await ToolContext(desk, now=lambda: world.time, sla_s=1800).first("x", *fallbacks)


async def test_gold_is_the_spot_price():
    found = await first(gold_fallbacks())

    assert (found.price_usd, found.source, found.kind) == (gold_api.spot(WORLD), "goldapi:XAU", "spot")


@pytest.mark.parametrize(
    ("down", "source", "kind", "price"),
    [
        (1, "paxg/kraken", "token", lambda: market.price(WORLD, "PAXG", venue="kraken")),
        (2, "chainlink:XAU-USD", "spot", lambda: market.price(WORLD, "XAU", NOW - NOW % 21600)),
        (3, "yahoo:GC=F", "futures", lambda: stocks.future(WORLD, "GC=F", stocks.last_trade(WORLD))),
    ],
)
async def test_gold_falls_back_to_a_token_to_the_chain_and_to_the_future(down, source, kind, price):
    chain = ["GoldApi.xau_spot", "Kraken.ticker", "Chainlink.price_feed"]
    found = await first(gold_fallbacks(), down=chain[:down])

    assert (found.source, found.kind) == (source, kind)
    assert found.price_usd == pytest.approx(price(), abs=0.01)
    assert WORLD.time - dt.timedelta(days=1) < found.as_of <= WORLD.time


async def test_an_impossible_price_of_gold_is_passed_over():
    edits = Edits(pins={"price.PAXG": [(0, 1e12, 5.0)]})
    found = await first(gold_fallbacks(), down={"GoldApi.xau_spot"}, world=World(1, NOW, edits))

    assert found.source == "chainlink:XAU-USD"


CASES = pytest.mark.parametrize(
    ("fallbacks", "name", "series_id", "eia", "future", "mirror"),
    [
        (oil_fallbacks, "oil", "DCOILWTICO", "eia:RWTC", "CL=F", "Datahub.wti_daily"),
        (gas_fallbacks, "nat_gas", "DHHNGSP", "eia:RNGWHHD", "NG=F", "Datahub.henry_hub_daily"),
    ],
)


@CASES
async def test_oil_and_gas_are_the_newest_spot_price_of_fred(fallbacks, name, series_id, eia, future, mirror):
    for keys in ({}, KEY):
        found = await first(fallbacks(TODAY), keys=keys)
        assert found == (macro.level(WORLD, name, found.date), found.date, f"fred:{series_id}", "spot")
        assert TODAY - dt.timedelta(days=14) < found.date < TODAY


@CASES
async def test_oil_and_gas_fall_back_to_the_copy_and_to_the_future(fallbacks, name, series_id, eia, future, mirror):
    copied = await first(fallbacks(TODAY), down=FRED)
    traded = await first(fallbacks(TODAY), down={*FRED, mirror})

    assert copied == (macro.level(WORLD, name, LAST_COPY), LAST_COPY, eia, "spot")
    assert datahub.days(WORLD, 1) == [LAST_COPY]
    assert traded.price_usd == stocks.future(WORLD, future, stocks.last_trade(WORLD))
    assert (traded.date, traded.source, traded.kind) == (dt.date(2027, 1, 14), f"yahoo:{future}", "futures")


@CASES
async def test_with_everybody_down_there_is_no_price(fallbacks, name, series_id, eia, future, mirror):
    with pytest.raises(SourceError):
        await first(fallbacks(TODAY), down={"*"})


async def test_a_missing_newest_day_is_not_the_price():
    """On a holiday the chart has a row without a value: the newest value is the day before."""
    world = World(1, dt.datetime(2027, 1, 6, 22, tzinfo=dt.UTC).timestamp())
    found = await first(oil_fallbacks(dt.date(2027, 1, 6)), world=world)

    assert found.date == dt.date(2026, 12, 31)  # the week ends with New Year's Day


async def test_the_series_for_correlation_never_comes_from_futures():
    found = await first(oil_series_fallbacks(TODAY), down=FRED)
    assert found.source == "eia:RWTC"
    with pytest.raises(SourceError):
        await first(oil_series_fallbacks(TODAY), down={*FRED, "Datahub.wti_daily"})


async def test_the_dollar_index_is_freds_or_that_of_the_release():
    by_fred = await first(dollar_index_fallbacks(TODAY))
    by_release = await first(dollar_index_fallbacks(TODAY), down=FRED)

    assert (by_fred.source, by_release.source) == ("fred:DTWEXBGS", "federalreserve:H10/JRXWTFB_N.B")
    assert dict(by_fred.series).items() <= dict(by_release.series).items()


def test_one_chart_holds_all_three_daily_series():
    assert daily_chart(TODAY).ids == ("DCOILWTICO", "DHHNGSP", "DTWEXBGS")


CHAIN = ["CNBC.quotes", "Cboe.delayed_quote", "Yahoo.spark"]


@pytest.mark.parametrize("symbol", ["SPY", "DIA", "QQQ", "VIX"])
@pytest.mark.parametrize(
    ("down", "source", "freshness"), [(0, "cnbc:", "real_time"), (1, "cboe:", "delayed"), (2, "yahoo:", "delayed")]
)
async def test_every_provider_tells_the_same_price_and_change(symbol, down, source, freshness):
    found = await first(market_fallbacks(symbol), down=CHAIN[:down])
    seen = stocks.trade(WORLD, symbol)

    assert found.price == pytest.approx(seen.last, abs=0.005)
    assert found.change == pytest.approx(seen.last - seen.previous_close, abs=0.02)
    assert found.change_percent == pytest.approx((seen.last / seen.previous_close - 1) * 100, abs=0.02)
    assert found.source.startswith(source)
    assert found.freshness == freshness


async def test_the_vix_has_its_published_closes_as_a_last_resort_and_the_funds_have_nothing():
    found = await first(vix_fallbacks(), down=CHAIN)
    closes = [round(stocks.price(WORLD, "VIX", s.closes), 2) for s in stocks.sessions(WORLD, 2)]

    assert (found.price, found.source, found.freshness) == (closes[0], "cboe:VIX_History", "previous_close")
    assert found.change == pytest.approx(closes[0] - closes[1], abs=0.005)
    assert found.as_of == dt.datetime(2027, 1, 14, 21, tzinfo=dt.UTC)
    with pytest.raises(SourceError):
        await first(market_fallbacks("SPY"), down=CHAIN)


async def test_one_question_serves_all_four_symbols():
    desk = SimDesk(WORLD)
    for symbol in ("SPY", "DIA", "QQQ", "VIX"):
        await ToolContext(desk, now=lambda: WORLD.time, sla_s=1800).first("x", *market_fallbacks(symbol))

    assert len(set(desk.asked)) == 1


@pytest.mark.parametrize(("delayed", "freshness"), [(False, "real_time"), (True, "delayed"), (None, "delayed")])
def test_what_is_not_known_to_be_real_time_is_called_delayed(delayed, freshness):
    assert from_quote(StockQuote("SPY", 690.0, 680.0, delayed=delayed), "x").freshness == freshness


@pytest.mark.parametrize("price", [1.5, 900.0])
def test_a_vix_that_cannot_be_is_refused(price):
    with pytest.raises(ValueError, match="outside"):
        from_quote(StockQuote("VIX", price, 20.0), "x")


async def test_a_symbol_that_cboe_does_not_have_is_no_quote():
    with pytest.raises(SourceError):
        await first(market_fallbacks("SPY")[1:2], forms={"Cboe.delayed_quote": "auth"})


def test_a_single_close_has_no_change():
    with pytest.raises(LookupError):
        from_closes(series([(TODAY, 20.0)]))


def test_an_unchanged_price_has_a_change_of_zero():
    assert from_quote(StockQuote("SPY", 690.0, 690.0), "x") == IndexQuote(690.0, 0.0, 0.0, None, "x", "delayed")


@pytest.mark.parametrize(("delayed", "freshness"), [(False, "real_time"), (True, "delayed"), (None, "delayed")])
def test_a_price_is_of_this_moment_only_where_the_provider_says_so(delayed, freshness):
    assert from_quote(StockQuote("SPX", 5000.0, 4990.0, delayed=delayed), "yahoo").freshness == freshness


def test_the_change_is_computed_from_the_prices_in_hundredths():
    quote = from_quote(StockQuote("SPX", 5000.126, 4990.0), "yahoo")
    assert (quote.change, quote.change_percent) == (10.13, 0.2)
