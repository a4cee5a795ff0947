"""Crypto in depth: both lists, the Bitcoin network, gas, and daily candles."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil

import pytest
from pydantic import ValidationError

import tools.simulated.binance
import tools.simulated.blockchain_info
import tools.simulated.blockscout
import tools.simulated.blockstream
import tools.simulated.coinbase
import tools.simulated.coingecko
import tools.simulated.coinlore
import tools.simulated.coinpaprika
import tools.simulated.ethereum
import tools.simulated.etherscan
import tools.simulated.kraken
import tools.simulated.large_transfers
import tools.simulated.mempool
import tools.simulated.okx  # noqa: F401 - registers its routes
from tests.requirements import proves
from tests.tools.desk import NOW, ask
from tests.tools.selling import sell
from tools.parsing.bitcoin import Fees
from tools.parsing.coins import Coin
from tools.premium.crypto_deep import canonical, exact, gas_figures, premium_crypto_deep, ranked
from tools.shared import bitcoin_network, exchange_list
from tools.shared.bitcoin_network import fee_rates
from tools.shared.exchange_list import Pair, is_coin
from tools.shared.gas import GasPrice
from tools.simulated import bitcoin as bitcoin_chain
from tools.simulated import market
from tools.sources import mempool
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.json_schema import input_schema
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
AT = datetime.fromtimestamp(NOW, UTC)
STABLE = {"USDT", "USDC"}
EXCHANGES = {"Coinbase.candles", "Kraken.ohlc", "Binance.klines"}
PARTS = {
    "coins_top50": {"CoinGecko.markets", "Coinlore.tickers", "CoinPaprika.tickers"},
    "exchange_top20_usdt": {"Binance.ticker_24h", "Kraken.asset_pairs", "Kraken.ticker_all", "OKX.spot_tickers"},
    "network_btc": {"Mempool.network", "Blockstream.network", "BlockchainInfo.stats"},
    "eth_gas": {"Ethereum.full_block", "Ethereum.fee_history", "Blockscout.gas_prices"},
    "series": {*EXCHANGES, "Chainlink.price_feed", "Chainlink.round_history"},
}


def codes(made):
    return [warning.code for warning in made.notes.warnings]


def statuses(made, section):
    return {note.source.name: note.status for note in made.notes.sources if note.section == section}


# The whole


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_fifty_largest_coins_and_their_changes_are_those_of_the_world(compose, seed):
    world = World(seed, NOW)
    made = await compose(premium_crypto_deep, world=world)

    assert [row["symbol"] for row in made.json["coins_top50"]] == [coin.symbol for coin in market.coins()[:50]]
    assert [row["rank"] for row in made.json["coins_top50"]] == list(range(1, 51))
    for row in made.json["coins_top50"]:
        spans = {"1h": market.HOUR, "24h": market.DAY, "7d": 7 * market.DAY}
        for name, span in spans.items():
            change = market.change_percent(world, row["symbol"], span)
            assert row[f"change_{name}_percent"] == pytest.approx(change, abs=0.006)
        assert row["price_usd"] == pytest.approx(market.price(world, row["symbol"], venue="coingecko"), rel=1e-2)
    assert made.notes.warnings == []
    assert made.notes.stale() is False
    assert "series" not in made.json


async def test_the_exchange_list_holds_the_most_traded_coins_against_usdt(compose):
    made = await compose(premium_crypto_deep)

    rows = made.json["exchange_top20_usdt"]
    traded = {
        coin.symbol: day.volume * (day.open + day.high + day.low + day.last) / 4
        for coin in market.coins()
        if coin.symbol not in STABLE
        for day in [market.day(WORLD, coin.symbol, "binance")]
    }
    expected = sorted(traded, key=lambda symbol: -traded[symbol])[:20]
    assert [row["pair"] for row in rows] == [f"{symbol}-USDT" for symbol in expected]
    assert all(one["volume_24h"] >= two["volume_24h"] for one, two in pairwise(rows))
    bitcoin = rows[expected.index("BTC")]
    day = market.day(WORLD, "BTC", "binance")
    assert bitcoin["volume_24h"] == pytest.approx(traded["BTC"], rel=1e-6)
    assert (bitcoin["price"], bitcoin["high_24h"], bitcoin["low_24h"]) == (
        round(day.last, 2),
        round(day.high, 2),
        round(day.low, 2),
    )
    assert bitcoin["change_24h_percent"] == pytest.approx((day.last / day.open - 1) * 100, abs=0.006)
    assert isinstance(bitcoin["trades_24h"], int)
    assert {row["venue"] for row in rows} == {"binance"}


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_network_is_that_of_the_world_with_fees_rounded_up(compose, seed):
    world = World(seed, NOW)
    made = await compose(premium_crypto_deep, world=world)

    said, expected = made.json["network_btc"], ROUTES.expectations["pro/crypto-deep"](world, {})
    assert said["block_height"] == expected["block_height"]
    fees = expected["fees_sat_per_vb"]
    assert list(said["fees_sat_per_vb"].values()) == [*(max(1, ceil(fee)) for fee in fees), *fees]
    assert said["hashrate"]["current_eh_s"] == round(expected["hashrate"]["current_eh_s"], 2)
    assert said["hashrate"]["mean_days"] == 7
    assert said["hashrate"]["current_difficulty"] == pytest.approx(expected["hashrate"]["current_difficulty"])
    assert said["mempool"] == expected["mempool"]


@pytest.mark.parametrize("base_fee", [0.0312, 7.25])
async def test_gas_is_whole_gwei_rounded_up_beside_the_exact_figures(compose, base_fee):
    world = World(1, NOW, Edits(pins={"gas.base_fee_gwei": [(0, NOW + 60, base_fee)]}))
    made = await compose(premium_crypto_deep, world=world)

    gas, expected = made.json["eth_gas"], ROUTES.expectations["gas"](world, {})
    for name in ("low", "standard", "fast"):
        assert gas[f"{name}_gwei_exact"] == expected[name]
        assert gas[f"{name}_gwei"] == ceil(expected[name])
    assert (gas["base_fee_gwei"], gas["last_block"]) == (base_fee, expected["block"])


# History


async def test_history_adds_thirty_complete_days_oldest_first(compose):
    made = await compose(premium_crypto_deep, {"history": "30d"})

    rows = made.json["series"]["btc_30d"]
    midnight = AT.replace(hour=0)
    assert [row["ts"] for row in rows] == [
        int((midnight - timedelta(days=n)).timestamp() * 1000) for n in range(30, 0, -1)
    ]
    for row in rows:
        expected = market.candle(WORLD, "BTC", row["ts"] / 1000, market.DAY, "coinbase")
        values = (row["open"], row["high"], row["low"], row["close"], row["volume"])
        assert values == pytest.approx((*expected[1:5], expected.volume), rel=1e-6)
    assert made.json["notes"]["history"].startswith("30 of the 30")
    assert made.notes.warnings == []


@pytest.mark.parametrize(
    ("down", "used"),
    [({"Coinbase.candles"}, "Kraken.ohlc"), ({"Coinbase.candles", "Kraken.ohlc"}, "Binance.klines")],
)
async def test_another_exchange_gives_the_days(compose, down, used):
    made = await compose(premium_crypto_deep, {"history": "30d"}, down=down)
    assert len(made.json["series"]["btc_30d"]) == 30
    assert statuses(made, "series.btc_30d") == {used: "fallback"} | dict.fromkeys(down, "error")


async def test_days_of_the_oracle_have_no_volume_and_say_so(compose):
    made = await compose(premium_crypto_deep, {"history": "30d"}, down=EXCHANGES)

    days = made.json["series"]["btc_30d"]
    assert (len(days), {day["volume"] for day in days}) == (30, {None})
    assert all(day["low"] <= min(day["open"], day["close"]) <= day["high"] for day in days)
    told = [w.message for w in made.notes.warnings if (w.section, w.code) == ("series.btc_30d", "field_missing")]
    assert told == ["volume: not known from chainlink."]


async def test_history_that_nobody_has_is_null_and_unasked_history_is_absent(compose):
    made = await compose(premium_crypto_deep, {"history": "30d"}, down=PARTS["series"])
    assert made.json["series"] == {"btc_30d": None}
    assert codes(made) == ["section_unavailable"]
    assert (await compose(premium_crypto_deep, down=PARTS["series"])).notes.warnings == []


# The filter


async def test_coins_picks_from_both_lists_in_any_case_and_form(compose):
    for given in ("near, eth,BTC,near", ["ETH", "btc", "Near"]):
        made = await compose(premium_crypto_deep, {"coins": given})
        assert [row["symbol"] for row in made.json["coins_top50"]] == ["BTC", "ETH", "NEAR"]
        assert {row["pair"] for row in made.json["exchange_top20_usdt"]} == {"BTC-USDT", "ETH-USDT", "NEAR-USDT"}
        assert made.notes.warnings == []
    whole = (await compose(premium_crypto_deep)).json
    assert made.json["coins_top50"][:2] == whole["coins_top50"][:2]
    assert made.json["network_btc"] == whole["network_btc"]


async def test_a_small_coin_can_be_asked_for_though_it_is_not_among_the_largest(compose):
    small = market.coins()[70].symbol
    made = await compose(premium_crypto_deep, {"coins": small})
    assert [(row["symbol"], row["rank"]) for row in made.json["coins_top50"]] == [(small, 71)]


async def test_what_is_in_neither_list_is_named_and_nothing_at_all_is_free(compose):
    some = await compose(premium_crypto_deep, {"coins": "BTC,NOSUCH,USDT"})
    assert [row["symbol"] for row in some.json["coins_top50"]] == ["BTC", "USDT"]
    assert [row["pair"] for row in some.json["exchange_top20_usdt"]] == ["BTC-USDT"]
    [warning] = some.notes.warnings
    assert (warning.code, "NOSUCH" in warning.message, "USDT" in warning.message) == ("missing_symbols", True, False)


@proves("charge.nothing-chosen")
@pytest.mark.parametrize(
    ("coins", "down", "paid"),
    [
        ("NOSUCH", set(), 0),
        ("NOSUCH", PARTS["coins_top50"], 0),
        ("BTC", set(), 2),
        ("BTC", PARTS["coins_top50"], 2),
        (None, PARTS["coins_top50"] | PARTS["exchange_top20_usdt"], 2),
    ],
)
async def test_a_filter_that_finds_nothing_costs_nothing_and_gives_nothing(coins, down, paid):
    sale = await sell(premium_crypto_deep, {"history": "30d"} | ({"coins": coins} if coins else {}), down=down)
    assert (sale.paid, sale.outcome.no_charge) == (paid, None if paid else "empty_result")
    rest = sale.body["network_btc"], sale.body["eth_gas"], sale.body["series"]["btc_30d"]
    assert [part is not None for part in rest] == [paid > 0] * 3


async def test_nothing_is_sold_when_nobody_answers():
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_crypto_deep, down={"*"})


@pytest.mark.parametrize("given", [",".join(f"C{n}" for n in range(21)), "BTC ETH", "B" * 21, "<b>", "BTC;ETH", "-A"])
def test_too_many_and_impossible_symbols_are_refused(given):
    with pytest.raises(ValidationError):
        operation_of(premium_crypto_deep).arguments.model_validate({"coins": given})


def test_the_same_question_is_the_same_question():
    assert canonical("eth, BTC,,btc ") == canonical(["BTC", "ETH"]) == "BTC,ETH"
    assert canonical("") is canonical(None) is canonical([]) is canonical(" ,") is None
    assert canonical(",".join(f"C{n}" for n in range(20))).count(",") == 19
    schema = input_schema(operation_of(premium_crypto_deep).arguments)["properties"]
    assert (schema["coins"]["type"], schema["history"]["enum"]) == ("string", ["30d"])


# When sources fail


@pytest.mark.parametrize("part", list(PARTS))
async def test_one_part_that_fails_is_null_and_the_others_are_what_they_were(compose, part):
    whole = (await compose(premium_crypto_deep, {"history": "30d"})).json
    made = await compose(premium_crypto_deep, {"history": "30d"}, down=PARTS[part])

    lost = {"btc_30d": None} if part == "series" else None
    assert made.json[part] == lost
    assert {name: made.json[name] for name in PARTS if name != part} == {n: whole[n] for n in PARTS if n != part}
    assert set(codes(made)) == {"section_unavailable"}
    assert {w.section.split(".")[0] for w in made.notes.warnings} == {part}


async def test_when_nobody_answers_nothing_is_invented(compose):
    for arguments in ({}, {"history": "30d", "coins": "BTC"}):
        with pytest.raises(SourceError):
            await compose(premium_crypto_deep, arguments, down={"*"})


@pytest.mark.parametrize(
    ("down", "used"),
    [({"CoinGecko.markets"}, "Coinlore.tickers"), ({"CoinGecko.markets", "Coinlore.tickers"}, "CoinPaprika.tickers")],
)
async def test_another_market_page_gives_the_coins(compose, down, used):
    made = await compose(premium_crypto_deep, down=down)
    whole = await compose(premium_crypto_deep)
    assert [r["symbol"] for r in made.json["coins_top50"]] == [r["symbol"] for r in whole.json["coins_top50"]]
    assert statuses(made, "coins_top50") == {used: "fallback"} | dict.fromkeys(down, "error")
    assert codes(made) == ["fallback_used"]


async def test_kraken_stands_in_with_changes_of_okx_and_with_usd_where_there_is_no_usdt(compose):
    made = await compose(premium_crypto_deep, down={"Binance.ticker_24h"})

    rows = made.json["exchange_top20_usdt"]
    assert {row["venue"] for row in rows} == {"kraken"}
    bitcoin, change = next(row for row in rows if row["pair"] == "BTC-USDT"), market.day(WORLD, "BTC", "okx")
    assert bitcoin["change_24h_percent"] == pytest.approx((change.last / change.open - 1) * 100, abs=0.02)
    assert None not in {row["change_24h_percent"] for row in rows}
    assert all(isinstance(row["trades_24h"], int) for row in rows)
    assert len({row["pair"].split("-")[0] for row in rows}) == 20
    assert sorted(codes(made)) == ["degraded_fallback", "fallback_used"]
    [left_out] = [w.message for w in made.notes.warnings if w.code == "degraded_fallback"]
    assert left_out == "3 pairs against other coins, or in money without a price in USD, are in no volume."


async def test_without_okx_the_changes_beside_kraken_are_those_of_the_coins_over_all_venues(compose):
    made = await compose(premium_crypto_deep, down={"Binance.ticker_24h", "OKX.spot_tickers"})

    coins = {coin["symbol"]: coin["change_24h_percent"] for coin in made.json["coins_top50"]}
    rows = made.json["exchange_top20_usdt"]
    assert {row["venue"] for row in rows} == {"kraken"}
    known = [row for row in rows if row["pair"].split("-")[0] in coins]
    assert len(known) >= 10
    assert all(row["change_24h_percent"] == coins[row["pair"].split("-")[0]] for row in known)


async def test_okx_stands_in_without_the_number_of_trades(compose):
    made = await compose(premium_crypto_deep, down={"Binance.ticker_24h", "Kraken.ticker_all"})

    rows = made.json["exchange_top20_usdt"]
    assert {row["venue"] for row in rows} == {"okx"}
    assert {row["trades_24h"] for row in rows} == {None}
    change = market.day(WORLD, "BTC", "okx")
    bitcoin = next(row for row in rows if row["pair"] == "BTC-USDT")
    assert bitcoin["change_24h_percent"] == pytest.approx((change.last / change.open - 1) * 100, abs=0.02)
    [missing] = [w for w in made.notes.warnings if w.code == "field_missing"]
    assert "trades_24h" in missing.message
    assert "change" not in missing.message


async def test_other_explorers_stand_in_for_each_part_of_the_network(compose):
    whole = (await compose(premium_crypto_deep)).json["network_btc"]
    made = await compose(premium_crypto_deep, down={"Mempool.network"})

    power = made.json["network_btc"].pop("hashrate")
    assert power["current_eh_s"] == round(bitcoin_chain.hashrate(WORLD, 1) / 1e18, 2)
    assert power == whole.pop("hashrate") | {"current_eh_s": power["current_eh_s"], "mean_days": 1}
    assert made.json["network_btc"] == whole
    assert statuses(made, "network_btc.hashrate") == {"BlockchainInfo.stats": "fallback", "Mempool.network": "error"}
    for part in ("block_height", "fees_sat_per_vb", "mempool"):
        names = {"Blockstream.network": "fallback", "Mempool.network": "error"}
        assert statuses(made, f"network_btc.{part}") == names


@pytest.mark.parametrize(("word", "is_read"), [("http_404", True), ("http_400", False)])
async def test_an_instance_without_precise_fees_gives_whole_ones_alone(word, is_read):
    class OldInstance:
        async def read(self, source):
            if source is mempool.FEES:
                raise SourceChanged(word=word)
            return ask(source)

    read_fees = bitcoin_network.network_chains("btc")["btc.fees_sat_per_vb"][1]
    if is_read:
        rates = fee_rates(await read_fees(OldInstance()))
        assert (rates.fastest >= 1, rates.fastest_exact) == (True, None)
    else:
        with pytest.raises(SourceChanged):
            await read_fees(OldInstance())


async def test_a_part_of_the_network_that_nobody_has_is_null_alone(compose):
    made = await compose(premium_crypto_deep, down={"Mempool.network", "BlockchainInfo.stats"})
    network = made.json["network_btc"]
    assert network["hashrate"] is None
    assert None not in (network["block_height"], network["fees_sat_per_vb"], network["mempool"])


async def test_an_explorers_gas_has_neither_base_fee_nor_block(compose):
    made = await compose(premium_crypto_deep, down={"Ethereum.fee_history"})
    gas = made.json["eth_gas"]
    assert (gas["base_fee_gwei"], gas["last_block"]) == (None, None)
    assert gas["standard_gwei"] == ceil(gas["standard_gwei_exact"])


async def test_other_forms_of_the_same_answers_are_read(compose):
    whole = (await compose(premium_crypto_deep)).json
    forms = dict.fromkeys(["Binance.ticker_24h", "Mempool.network"], "drift")
    made = (await compose(premium_crypto_deep, forms=forms)).json
    assert made["network_btc"] == whole["network_btc"]
    assert [r["pair"] for r in made["exchange_top20_usdt"]] == [r["pair"] for r in whole["exchange_top20_usdt"]]


async def test_an_error_with_200_is_not_a_list(compose):
    forms = {"CoinGecko.markets": "error200", "Binance.ticker_24h": "error200"}
    made = await compose(premium_crypto_deep, forms=forms)
    assert (len(made.json["coins_top50"]), len(made.json["exchange_top20_usdt"])) == (50, 20)
    assert codes(made).count("fallback_used") == 2


# The rules


def pair(base, quote="USDT", volume=1.0):
    return Pair(base, quote, 1.0, 0.0, volume, 1.0, 1.0, 1, "test")


def test_each_coin_is_listed_once_against_usdt_if_it_can_be_and_money_never():
    listed = [pair("BTC", "USD", 9), pair("BTC", volume=2), pair("XMR", "USD", 5), pair("USDC", volume=99)]
    listed += [pair("EUR", volume=98), pair("USDT", "USD", 97), pair("DEAD", volume=0), pair("ETH", "BTC", 96)]
    found = exchange_list.ranked(listed)
    assert [(p.base, p.quote) for p in found] == [("XMR", "USD"), ("BTC", "USDT")]
    assert exchange_list.pairs_in_usd(found) == ["XMR"]
    with pytest.raises(SourceEmpty):
        exchange_list.ranked([pair("USDC"), pair("FDUSD")])


@pytest.mark.parametrize("base", ["BTCUP", "BTCDOWN", "ETHBULL", "ETHBEAR", "USDC", "TUSD", "EUR", "USDT"])
def test_leveraged_tokens_and_money_are_no_coins(base):
    assert not is_coin(base, {"BTC", "ETH", base})


@pytest.mark.parametrize("base", ["JUP", "SYRUP", "BTC", "BULLA", "UPC"])
def test_a_coin_is_not_dropped_for_its_last_letters(base):
    assert is_coin(base, {"BTC", "ETH", base})


def test_coins_without_a_rank_are_left_out_and_none_ranked_is_no_list():
    def coin(symbol, rank):
        return Coin(symbol, symbol, 1.0, None, None, None, None, None, rank, None, None, None, None)

    assert [c.symbol for _, c in ranked([coin("B", 2), coin("X", None), coin("A", 1)])] == ["A", "B"]
    with pytest.raises(LookupError):
        ranked([coin("X", None)])


def test_whole_fees_and_gas_are_always_enough():
    assert fee_rates(Fees(12.01, 12.0, 1.0, 0.3, 0.1)).model_dump() == {
        "fastest": 13,
        "half_hour": 12,
        "hour": 1,
        "economy": 1,
        "minimum": 1,
        "fastest_exact": 12.01,
        "half_hour_exact": 12.0,
        "hour_exact": 1.0,
        "economy_exact": 0.3,
        "minimum_exact": 0.1,
    }
    assert fee_rates(Fees(3, 1, 1, 1, 1, is_whole=True)).fastest_exact is None
    gas = gas_figures(GasPrice(0.00000123, 1.0, 1.2, 0.5, 7, AT, "fee_history"))
    assert (gas.low_gwei, gas.standard_gwei, gas.fast_gwei) == (1, 1, 2)
    assert (gas.low_gwei_exact, exact(12.34567)) == (0.0000012, 12.3457)


def test_every_source_that_may_be_read_is_named():
    named = {source.name for source in operation_of(premium_crypto_deep).sources}
    assert named == set().union(*PARTS.values()) | {"Etherscan.gas_oracle", "BitcoinCore.network"}
    assert {s.name for s in bitcoin_network.NETWORK_SOURCES} == PARTS["network_btc"] | {"BitcoinCore.network"}
    operation = operation_of(premium_crypto_deep)
    assert (operation.credits, operation.ttl_s, operation.sla_s) == (2, 60, 300)
