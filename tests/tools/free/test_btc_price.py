"""The bitcoin price and its seven fallbacks."""

from datetime import UTC, datetime, timedelta

import pytest

import tools.simulated.binance
import tools.simulated.coinbase
import tools.simulated.coingecko
import tools.simulated.coinlore
import tools.simulated.ethereum
import tools.simulated.kraken
import tools.simulated.okx  # noqa: F401 - each registers its routes
from tests.tools.desk import NOW
from tools.free.btc_price import btc_price, shown
from tools.parsing.candles import Candle
from tools.shared.spot import BTC_SPOT_SOURCES, Spot, btc_spot_fallbacks, close_a_day_ago, from_coins, from_okx
from tools.simulated import market
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
ORDER = [
    "Coinbase.product_stats",
    "Kraken.ticker",
    "Binance.ticker_24h",
    "OKX.spot_tickers",
    "CoinGecko.markets",
    "Coinlore.tickers",
    "Chainlink.price_feed",
]


def a_day(venue):
    return market.day(WORLD, "BTC", venue)


async def test_the_price_is_coinbases_and_equals_the_world(compose):
    made = await compose(btc_price)

    assert made.json == ROUTES.expectations["btc-price"](WORLD, {}) | {
        "volume_24h_usd": pytest.approx(ROUTES.expectations["btc-price"](WORLD, {})["volume_24h_usd"], rel=1e-6)
    }
    assert [(n.source.name, n.status) for n in made.notes.sources] == [
        ("Coinbase.product_stats", "live"),
        ("Coinbase.candles", "live"),
    ]
    assert made.notes.warnings == []


@pytest.mark.parametrize(
    ("failed", "venue"), [(1, "kraken"), (2, "binance"), (3, "okx"), (4, "coingecko"), (5, "coinlore")]
)
async def test_the_next_venue_answers_when_those_before_are_down(compose, failed, venue):
    made = await compose(btc_price, down=set(ORDER[:failed]))

    assert made.json["venue"] == venue
    assert made.json["quote"] == ("USDT" if venue in ("binance", "okx") else "USD")
    expected = market.price(WORLD, "BTC")
    assert made.json["price_usd"] == pytest.approx(expected, rel=0.002)
    assert made.json["change_24h_percent"] == pytest.approx(market.change_percent(WORLD, "BTC", 86400), abs=2)
    assert made.json["volume_24h_usd"] > 1e8
    by_name = {n.source.name: n.status for n in made.notes.sources}
    assert by_name[ORDER[failed]] == "fallback"
    assert all(by_name[name] == "error" for name in ORDER[:failed])
    codes = [w.code for w in made.notes.warnings]
    assert codes == ["fallback_used"] + (["field_missing"] if venue == "coinlore" else [])


async def test_krakens_change_is_against_the_close_of_the_hourly_candle_a_day_back(compose):
    made = await compose(btc_price, down={ORDER[0]})

    now, candle = a_day("kraken").last, market.candle(WORLD, "BTC", NOW - 86400, 3600, "kraken")
    assert made.json["change_24h_percent"] == pytest.approx((now / candle.close - 1) * 100, abs=0.01)
    volume = a_day("kraken")
    mean = (volume.open + volume.high + volume.low + volume.last) / 4
    assert made.json["volume_24h_usd"] == pytest.approx(volume.volume * mean, rel=1e-6)


async def test_without_krakens_candles_nothing_proves_its_ticker_and_another_venue_answers(compose):
    made = await compose(btc_price, down={ORDER[0], "Kraken.ohlc"})

    assert made.json["venue"] == "binance"
    reasons = {note.source.name: note.reason for note in made.notes.sources}
    assert reasons["Kraken.ohlc"]


async def test_what_coinlore_does_not_say_is_null_and_never_filled_from_the_price(compose):
    made = await compose(btc_price, down=set(ORDER[:5]))
    assert (made.json["high_24h"], made.json["low_24h"]) == (None, None)
    assert "high_24h, low_24h" in made.notes.warnings[-1].message


async def test_the_chain_knows_the_price_only(compose):
    made = await compose(btc_price, down=set(ORDER[:6]))

    assert made.json["price_usd"] == pytest.approx(market.price(WORLD, "BTC", NOW - NOW % 1200), abs=0.01)
    assert made.json["venue"] == "chainlink"
    names = ("change_24h_percent", "high_24h", "low_24h", "volume_24h_usd")
    assert [made.json[name] for name in names] == [None] * 4
    assert all(name in made.notes.warnings[-1].message for name in names)


async def test_when_nobody_answers_no_price_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(btc_price, down={"*"})


@pytest.mark.parametrize("form", ["empty", "limited", "geo", "status:503"])
async def test_whatever_coinbase_says_instead_kraken_answers(compose, form):
    made = await compose(btc_price, forms={ORDER[0]: form})
    assert made.json["venue"] == "kraken"


async def test_errors_that_come_with_status_200_are_passed_by(compose):
    forms = {"Kraken.ticker": "error200", "Binance.ticker_24h": "error200", "OKX.spot_tickers": "error200"}
    made = await compose(btc_price, down={ORDER[0]}, forms=forms)
    assert made.json["venue"] == "coingecko"


async def test_a_pinned_price_is_the_price(compose):
    world = World(1, NOW, Edits(pins={"price.BTC": [(NOW - 60, NOW + 60, 50_000)]}))
    made = await compose(btc_price, world=world)
    assert made.json["price_usd"] == pytest.approx(50_000, rel=0.001)


def test_the_fallbacks_are_the_sources_the_operation_names():
    assert len(btc_spot_fallbacks()) == len(ORDER)
    assert operation_of(btc_price).sources == BTC_SPOT_SOURCES
    assert [s.name for s in BTC_SPOT_SOURCES if s.name not in ("Kraken.ohlc", "Coinbase.candles")] == ORDER
    operation = operation_of(btc_price)
    assert (operation.endpoint, operation.toolset, operation.ttl({})) == ("btc-price", "core", 30)


def test_without_a_candle_of_that_hour_there_is_no_close_a_day_ago():
    at = datetime(2027, 1, 15, tzinfo=UTC)
    hours = [Candle(at + timedelta(hours=i), 1, 1, 1, i, 1) for i in range(26)]
    assert close_a_day_ago(hours) == 1
    assert close_a_day_ago(hours[:1] + hours[2:]) is None


@pytest.mark.parametrize("pick", [from_okx("BTC"), from_coins("BTC", "coinlore")])
def test_a_list_without_bitcoin_lets_the_next_fallback_answer(pick):
    with pytest.raises(LookupError):
        pick(())


def test_numbers_are_rounded_to_the_digits_that_mean_something():
    spot = Spot(97000.129, -0.001, 98000.556, 95000.444, 1234567.8, "okx", "USDT")
    assert shown(spot).model_dump() == {
        "price_usd": 97000.13,
        "change_24h_percent": 0.0,
        "high_24h": 98000.56,
        "low_24h": 95000.44,
        "volume_24h_usd": 1234568.0,
        "venue": "okx",
        "quote": "USDT",
    }
