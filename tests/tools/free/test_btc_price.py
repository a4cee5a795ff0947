"""The bitcoin price and its seven fallbacks, and the price of any other of the largest coins."""

import json
from datetime import UTC, datetime, timedelta

import pytest

import tools.simulated.binance
import tools.simulated.coinbase
import tools.simulated.coingecko
import tools.simulated.coinlore
import tools.simulated.coinpaprika
import tools.simulated.ethereum
import tools.simulated.kraken
import tools.simulated.okx  # noqa: F401 - each registers its routes
from tests.tools.desk import NOW
from tools.free.btc_price import btc_price, shown
from tools.parsing.candles import Candle
from tools.parsing.coins import Coin, find_coin
from tools.shared.spot import (
    SPOT_SOURCES,
    Spot,
    btc_spot_fallbacks,
    from_coins,
    from_complete_list,
    from_okx,
    price_a_day_ago,
)
from tools.simulated import market
from tools.sources.coingecko import parse as parse_coingecko
from tools.sources.coinlore import parse as parse_coinlore
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError, SourceFrozen
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


async def test_krakens_change_is_against_the_price_of_exactly_a_day_ago(compose):
    made = await compose(btc_price, down={ORDER[0]})

    now, candle = a_day("kraken").last, market.candle(WORLD, "BTC", NOW - 86400, 3600, "kraken")
    assert made.json["change_24h_percent"] == pytest.approx((now / candle.open - 1) * 100, abs=0.01)
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


async def test_the_chain_knows_the_price_and_its_day_but_no_volume(compose):
    made = await compose(btc_price, down=set(ORDER[:6]))

    written = [market.price(WORLD, "BTC", NOW - NOW % 1200 - n * 1200) for n in range(73)]  # every 20 minutes
    assert made.json["venue"] == "chainlink"
    assert made.json["price_usd"] == pytest.approx(written[0], abs=0.01)
    assert made.json["change_24h_percent"] == pytest.approx((written[0] / written[-1] - 1) * 100, abs=0.01)
    assert made.json["high_24h"] == pytest.approx(max(written), abs=0.01)
    assert made.json["low_24h"] == pytest.approx(min(written), abs=0.01)
    assert made.json["volume_24h_usd"] is None
    assert made.notes.warnings[-1].message == "volume_24h_usd: not known from chainlink."


async def test_without_the_rounds_the_chain_knows_the_price_only(compose):
    made = await compose(btc_price, down={*ORDER[:6], "Chainlink.round_history"})

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
    assert operation_of(btc_price).sources == SPOT_SOURCES
    proofs = ("Kraken.ohlc", "Coinbase.candles", "Chainlink.round_history")
    assert [s.name for s in SPOT_SOURCES if s.name not in proofs] == [*ORDER, "CoinPaprika.tickers"]
    operation = operation_of(btc_price)
    assert (operation.endpoint, operation.toolset, operation.ttl({})) == ("btc-price", "core", 30)


def test_the_price_a_day_ago_lies_24_hours_back_at_every_minute_of_an_hour():
    at = datetime(2027, 1, 15, tzinfo=UTC)
    rising = [Candle(at + timedelta(hours=i), i, i + 1, i, i + 1, 1) for i in range(26)]  # a dollar an hour
    for minutes in (1, 30, 59):
        now = at + timedelta(hours=25, minutes=minutes)
        assert price_a_day_ago(rising, now) == pytest.approx(1 + minutes / 60)
    assert price_a_day_ago(rising[:1] + rising[2:], at + timedelta(hours=25)) is None


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
        "symbol": "BTC",
        "name": "Bitcoin",
    }


LISTS = ["CoinGecko.markets", "CoinPaprika.tickers", "Coinlore.tickers"]


@pytest.mark.parametrize("written", ["ETH", "eth", " Ethereum ", "ethereum"])
async def test_a_coin_is_named_by_symbol_name_or_id_in_any_case(compose, written):
    made = await compose(btc_price, arguments={"coin": written})
    assert (made.json["symbol"], made.json["name"], made.json["venue"]) == ("ETH", "Ethereum", "coingecko")
    assert made.json["price_usd"] == pytest.approx(market.price(WORLD, "ETH", venue="coingecko"), rel=1e-3)
    assert made.notes.warnings == []


@pytest.mark.parametrize("written", ["BTC", "btc", "Bitcoin", " xbt"])
async def test_bitcoin_by_any_name_is_the_answer_without_a_name(compose, written):
    assert (await compose(btc_price, arguments={"coin": written})).json == (await compose(btc_price)).json


@pytest.mark.parametrize(("failed", "venue"), [(1, "coinpaprika"), (2, "coinlore")])
async def test_the_next_list_prices_a_coin_when_those_before_are_down(compose, failed, venue):
    made = await compose(btc_price, arguments={"coin": "solana"}, down=set(LISTS[:failed]))
    assert (made.json["symbol"], made.json["venue"]) == ("SOL", venue)


async def test_the_last_of_the_250_largest_coins_has_a_price(compose):
    last = market.coins(250)[-1]
    made = await compose(btc_price, arguments={"coin": last.symbol})
    assert (made.json["symbol"], made.json["name"]) == (last.symbol, last.name)


async def test_when_only_the_short_list_answers_a_coin_that_it_lacks_has_no_price_and_is_not_unknown(compose):
    with pytest.raises(SourceError):
        await compose(btc_price, arguments={"coin": market.coins(250)[-1].symbol}, down=set(LISTS[:2]))


async def test_ether_is_priced_on_the_chain_when_every_list_is_down(compose):
    made = await compose(btc_price, arguments={"coin": "ETH"}, down=set(LISTS))
    assert (made.json["symbol"], made.json["venue"], made.json["volume_24h_usd"]) == ("ETH", "chainlink", None)
    written = [market.price(WORLD, "ETH", NOW - NOW % 1200 - n * 1200) for n in range(73)]
    assert made.json["high_24h"] == pytest.approx(max(written), abs=0.01)


async def test_an_unknown_coin_is_refused_with_the_most_similar_names(compose):
    with pytest.raises(InvalidArguments) as refused:
        await compose(btc_price, arguments={"coin": "etherium"})
    assert refused.value.extra["did_you_mean"][0] == "Ethereum"
    assert "250 largest" in refused.value.detail


def listed(symbol, name, rank, price_usd, minutes_old=1.0, slug=""):
    nothing = dict.fromkeys(("change_1h_percent", "change_24h_percent", "change_7d_percent", "market_cap_usd"))
    more = dict.fromkeys(("volume_24h_usd", "image", "high_24h", "low_24h"))
    at = AT - timedelta(minutes=minutes_old)
    return Coin(symbol=symbol, name=name, price_usd=price_usd, rank=rank, updated_at=at, slug=slug, **nothing, **more)


AT = datetime(2027, 1, 15, 8, tzinfo=UTC)


def test_of_several_coins_with_one_symbol_the_largest_is_priced_and_named():
    coins = [listed("UNI", "Uniswap", 20, 12.0), listed("UNI", "Unicorn", 90, 0.1, slug="unicorn-token")]
    assert from_complete_list("uni", "coingecko", AT)(coins).name == "Uniswap"
    assert from_complete_list("unicorn-token", "coingecko", AT)(coins).price_usd == 0.1


def test_a_price_that_its_list_has_stopped_renewing_is_none():
    pick = from_complete_list("sol", "coingecko", AT)
    assert pick([listed("SOL", "Solana", 5, 185.0, minutes_old=14)]).price_usd == 185.0
    with pytest.raises(SourceFrozen):
        pick([listed("SOL", "Solana", 5, 185.0, minutes_old=16)])


def test_recorded_lists_give_a_coin_its_id(sample):
    coins = parse_coingecko(json.loads(sample("coingecko/markets-top20-24h-7d.json")), None)
    assert find_coin(coins, "binancecoin").symbol == "BNB"
    assert find_coin(coins, "ripple").symbol == "XRP"
    short = parse_coinlore(json.loads(sample("coinlore/tickers.json")), None)
    assert find_coin(short, short[0].slug) is short[0]
