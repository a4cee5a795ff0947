"""The most traded pairs of an exchange; what Kraken's volumes add up to."""

import pytest

import tools.simulated.kraken  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.shared.exchange_list import count_left_out, in_usd, kraken_pairs, ranked
from tools.simulated import market
from tools.simulated.kraken import MORE, share
from tools.simulated.kraken import in_usd as worth_of
from tools.sources.kraken import ASSET_PAIRS, TICKER_ALL, AssetPair, KrakenTicker
from toolserver.world.model import World

NAMED = {
    "XXBTZUSD": AssetPair("BTC", "USD"),
    "XBTUSDT": AssetPair("BTC", "USDT"),
    "XXBTZEUR": AssetPair("BTC", "EUR"),
    "XBTPYUSD": AssetPair("BTC", "PYUSD"),
    "XBTAUSD": AssetPair("BTC", "AUSD"),
    "XXBTZJPY": AssetPair("BTC", "JPY"),
    "XETHXXBT": AssetPair("ETH", "BTC"),
    "XETHZUSD": AssetPair("ETH", "USD"),
    "ZEURZUSD": AssetPair("EUR", "USD"),
    "USDTZUSD": AssetPair("USDT", "USD"),
    "PYUSDUSD": AssetPair("PYUSD", "USD"),
    "ZUSDZJPY": AssetPair("USD", "JPY"),
}


def ticker(name, price, volume):
    return KrakenTicker(name, price, price, price, volume, price, 5)


TICKERS = [
    ticker("XXBTZUSD", 100_000, 9),
    ticker("XBTUSDT", 100_000, 1),
    ticker("XXBTZEUR", 80_000, 4),
    ticker("XBTPYUSD", 100_000, 0.5),
    ticker("XBTAUSD", 100_000, 7),
    ticker("XXBTZJPY", 15_000_000, 2),
    ticker("XETHXXBT", 0.04, 100),
    ticker("XETHZUSD", 4_000, 10),
    ticker("ZEURZUSD", 1.25, 1e6),
    ticker("USDTZUSD", 0.999, 1e6),
    ticker("PYUSDUSD", 1.001, 1e6),
    ticker("ZUSDZJPY", 150, 1e6),
    ticker("NEWUSD", 1, 1e12),
]


def test_a_coins_volume_at_kraken_is_the_sum_over_its_quotes_in_dollars():
    bitcoin, ether = ranked(kraken_pairs(TICKERS, NAMED))

    assert (bitcoin.base, bitcoin.quote, bitcoin.price) == ("BTC", "USDT", 100_000)
    in_dollars = 100_000 * (9 + 1 * 0.999 + 0.5 * 1.001) + 80_000 * 4 * 1.25 + 15_000_000 * 2 / 150
    assert bitcoin.volume == pytest.approx(in_dollars)
    assert (ether.base, ether.quote, ether.volume) == ("ETH", "USD", 40_000)


def test_pairs_whose_money_has_no_price_in_dollars_are_left_out_and_counted():
    found = {pair.base: pair.left_out for pair in ranked(kraken_pairs(TICKERS, NAMED))}
    assert found == {"BTC": 1, "ETH": 1}  # in AUSD, and in bitcoin
    assert count_left_out(ranked(kraken_pairs(TICKERS, NAMED))) == 2


def test_what_money_is_worth_is_said_by_its_own_pair_in_either_direction():
    known = [(NAMED[each.name], each) for each in TICKERS if each.name in NAMED]
    assert in_usd(known) == {"USD": 1.0, "EUR": 1.25, "USDT": 0.999, "PYUSD": 1.001, "JPY": pytest.approx(1 / 150)}


def test_no_coin_is_made_of_a_name_that_is_cut_in_the_wrong_place():
    bases = {pair.base for pair in ranked(kraken_pairs(ask(TICKER_ALL), ask(ASSET_PAIRS)))}
    assert not bases & {"XBTPY", "XBTA", "XRPRL", "ETHPY", "BTCPY", "USDTZ", "PYUSD", "GONE"}
    assert {"BTC", "ETH", "XRP", "SOL", "DOGE"} <= bases


def test_the_volume_of_bitcoin_is_that_of_the_world_over_all_its_quotes():
    world = World(1, NOW)
    found = next(pair for pair in ranked(kraken_pairs(ask(TICKER_ALL), ask(ASSET_PAIRS))) if pair.base == "BTC")
    day = market.day(world, "BTC", "kraken")
    mean = (day.open + day.high + day.low + day.last) / 4
    counted = [quote for quote in ("USD", "USDT", *MORE["BTC"]) if quote != "AUSD"]
    assert found.volume == pytest.approx(mean * day.volume * sum(share("BTC", quote) for quote in counted), rel=1e-3)
    assert found.left_out == 1
    assert worth_of(world, "EUR") != 1
