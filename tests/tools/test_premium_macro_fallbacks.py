"""The macro dashboard says when it shows something else: a token, a future, the close of yesterday, rates unfixed."""

import datetime as dt

import pytest

import tools.simulated.cboe
import tools.simulated.compositions
import tools.simulated.currency_api
import tools.simulated.datahub
import tools.simulated.ecb
import tools.simulated.ethereum
import tools.simulated.kraken
import tools.simulated.stocks
import tools.simulated.us_statistics
import tools.simulated.yahoo  # noqa: F401 - they serve
from tools.premium.macro import four, premium_macro
from tools.shared import fx


async def test_what_stands_in_for_spot_gold_is_said_in_the_notes(compose):
    token = await compose(premium_macro, down={"GoldApi.xau_spot"})
    future = await compose(premium_macro, down={"GoldApi.xau_spot", "Kraken.ticker", "Chainlink.price_feed"})

    assert token.json["commodities"]["gold"]["source"] == "paxg/kraken"
    assert "gold: a token for one ounce" in token.json["notes"]["commodities"]
    assert future.json["commodities"]["gold"]["source"] == "yahoo:GC=F"
    assert "gold: nearest future, not spot" in future.json["notes"]["commodities"]


async def test_a_vix_of_yesterday_says_so(compose):
    made = await compose(premium_macro, down={"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"})

    assert made.json["markets"]["vix"]["freshness"] == "previous_close"
    assert made.json["notes"]["vix"] == "Freshness of the value: previous close."
    assert made.json["markets"]["spy"] is None


async def test_rates_that_are_no_fixings_are_called_so_and_their_history_is_short(compose):
    down = {"Frankfurter.usd_timeseries", "ECB.reference_rates_90d"}
    made = await compose(premium_macro, {"history": "30d"}, down=down)

    assert made.json["forex"]["kind"] == "market_mid"
    assert [len(points) for points in made.json["forex"]["series"].values()] == [2] * 4
    assert ("forex.series", "incomplete_window") in {(w.section, w.code) for w in made.notes.warnings}


async def test_a_currency_that_is_not_quoted_is_left_out_and_said_to_be_missing(compose, monkeypatch):
    async def without_yen(reading):
        days = (await reading.read(fx.USD_TIMESERIES, fx.FxWindow(dt.date(2026, 11, 26), dt.date(2027, 1, 15))))[-30:]
        return four(fx.FxRates(tuple(day._replace(per_usd=less(day.per_usd)) for day in days), "ecb_reference"))

    def less(rates):
        return {code: rate for code, rate in rates.items() if code != "JPY"}

    monkeypatch.setattr(fx, "usd_fallbacks", lambda today: (without_yen,))
    made = await compose(premium_macro, {"history": "30d"})

    assert set(made.json["forex"]["rates"]) == set(made.json["forex"]["series"]) == {"EUR", "GBP", "CHF"}
    assert [(w.section, w.code) for w in made.notes.warnings] == [("forex.rates", "field_missing")]


def test_a_day_without_any_of_the_four_currencies_is_no_answer():
    with pytest.raises(LookupError):
        four(fx.FxRates((fx.FxDay(dt.date(2027, 1, 14), {"CAD": 1.39}),), "market_mid"))
