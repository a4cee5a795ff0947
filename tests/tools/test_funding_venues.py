"""Funding of perpetual contracts at five venues: what is read, what is refused, and their twins."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.binance_futures
import tools.simulated.bybit
import tools.simulated.dydx
import tools.simulated.hyperliquid
import tools.simulated.okx_funding  # noqa: F401 - they register their routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.funding import Funding, VenueFundings
from tools.simulated.funding import perpetuals
from tools.sources import binance_futures, bybit, dydx, hyperliquid, okx_funding
from toolserver.upstream.source import (
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceLimited,
    SourceRefused,
)
from toolserver.world.model import World

WORLD = World(1, NOW)


def premium(symbol="BTCUSDT", **more):
    terms = {"symbol": symbol, "markPrice": "97000.1", "lastFundingRate": "0.0001"}
    return terms | {"nextFundingTime": 1800000000000, "time": 1799999990000} | more


def test_the_recorded_binance_list_parses_to_its_perpetuals(sample):
    raw = json.loads(sample("binance/premiumIndex-all.json"))
    read = binance_futures.parse_premiums(raw, None)

    assert [p.symbol for p in read] == [r["symbol"] for r in raw if r["symbol"].endswith("USDT")]
    spell = next(p for p in read if p.symbol == "SPELLUSDT")
    assert (spell.rate, spell.mark_price) == (-0.00021469, 0.00046930)
    assert spell.next_at == datetime.fromtimestamp(1750176000, UTC)
    assert len(read) > binance_futures.PREMIUMS.least


@pytest.mark.parametrize("name", ["premiumIndex-BTCUSDT-2026", "premiumIndex-BTCUSDT-docs"])
def test_recorded_rows_of_other_years_parse(sample, name):
    (read,) = binance_futures.parse_premiums([json.loads(sample(f"binance/{name}.json"))], None)
    assert read.symbol == "BTCUSDT"


@pytest.mark.parametrize(
    "row",
    [
        premium("BTCUSDC"),
        premium("BTCUSDT_270326"),
        premium(nextFundingTime=0),
        premium(nextFundingTime=""),
        premium(lastFundingRate=""),
    ],
)
def test_binance_contracts_that_pay_no_funding_are_left_out(row):
    assert binance_futures.parse_premiums([row], None) == ()


def test_binance_intervals_are_eight_hours_unless_listed():
    premiums = binance_futures.parse_premiums([premium(), premium("PEPEUSDT")], None)
    intervals = binance_futures.parse_intervals([{"symbol": "PEPEUSDT", "fundingIntervalHours": 4}], None)
    assert [(f.symbol, f.period_hours) for f in binance_futures.fundings(premiums, intervals)] == [
        ("BTC-USDT", 8),
        ("PEPE-USDT", 4),
    ]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("error-451-geo-block", SourceRefused),
        ("error-418-ip-ban", SourceLimited),
        ("error-400-max-interval", SourceChanged),
    ],
)
def test_recorded_binance_errors_are_errors_in_both_lists(sample, name, error):
    body = json.loads(sample(f"binance/{name}.json"))
    for parse in (binance_futures.parse_premiums, binance_futures.parse_intervals):
        with pytest.raises(error):
            parse(body, None)


@given(st.lists(st.tuples(st.text("ABC1", min_size=1, max_size=6), st.floats(-0.02, 0.02)), max_size=20))
def test_binance_parse_never_invents_or_drops_contracts(rows):
    body = [premium(f"{base}USDT", lastFundingRate=f"{paid!r}") for base, paid in rows]
    assert [(p.symbol, p.rate) for p in binance_futures.parse_premiums(body, None)] == [
        (f"{b}USDT", r) for b, r in rows
    ]


def test_the_recorded_bybit_ticker_parses_to_its_values(sample):
    (read,) = bybit.parse(json.loads(sample("bybit/tickers-linear-BTCUSDT.json")), None)
    assert read[:4] == ("BTC-USDT", 0.00001938, 8, 107084.0)
    assert read.next_at == datetime.fromtimestamp(1762243200, UTC)
    assert read.annualized_percent == pytest.approx(2.1221, abs=1e-4)


def test_bybit_contracts_of_another_kind_are_left_out(sample):
    assert bybit.parse(json.loads(sample("bybit/tickers-inverse-docs.json")), None) == ()


@pytest.mark.parametrize("change", [{"fundingIntervalHour": ""}, {"fundingIntervalHour": None}, {"fundingRate": ""}])
def test_a_bybit_row_without_interval_or_rate_is_dropped_never_assumed(sample, change):
    body = json.loads(sample("bybit/tickers-linear-BTCUSDT.json"))
    body["result"]["list"][0] |= change
    assert bybit.parse(body, None) == ()


@pytest.mark.parametrize(("code", "error"), [(10006, SourceLimited), ("10024", SourceRefused), (10001, SourceChanged)])
def test_bybit_says_errors_with_200(code, error):
    with pytest.raises(error):
        bybit.parse({"retCode": code, "retMsg": "…", "result": {}}, None)


def test_the_recorded_okx_rate_parses_to_its_values(sample):
    (read,) = okx_funding.parse_rates(json.loads(sample("okx/funding-rate-BTC-USDT-SWAP.json")), None)
    assert read == Funding(
        "BTC-USDT",
        0.0001,
        8.0,
        None,
        datetime.fromtimestamp(1787184000, UTC),
        datetime.fromtimestamp(1787160689.19, UTC),
    )
    assert okx_funding.with_marks([read], {"BTC-USDT": 97000.0})[0].mark_price == 97000


@pytest.mark.parametrize("name", ["error-200-bad-instId", "error-200-missing-instId"])
def test_recorded_okx_errors_are_errors(sample, name):
    body = json.loads(sample(f"okx/{name}.json"))
    for parse in (okx_funding.parse_rates, okx_funding.parse_marks):
        with pytest.raises(SourceChanged):
            parse(body, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (binance_futures.PREMIUMS, binance_futures.INTERVALS),
        (okx_funding.FUNDING_RATES, okx_funding.MARK_PRICES),
    ],
)
def test_two_requests_of_one_name_are_kept_apart(one, other):
    assert one.name == other.name
    assert one.key(None) != other.key(None)


def test_the_recorded_dydx_markets_parse_to_their_values(sample):
    read = dydx.parse(json.loads(sample("dydx/perpetualMarkets.json")), None)
    assert [(f.symbol, f.period_hours, f.mark_price) for f in read] == [
        ("BTC-USD", 1, 89919.2),
        ("ETH-USD", 1, 3103.01),
        ("SOL-USD", 1, 135.3),
    ]
    assert read[0].period_rate == 0.00000254545454545455
    assert read[0].annualized_percent == pytest.approx(2.2298, abs=1e-4)


def test_closed_dydx_markets_are_left_out_and_a_missing_oracle_price_is_null():
    market = {"status": "ACTIVE", "oraclePrice": None, "nextFundingRate": "0.0001"}
    body = {
        "markets": {"A-USD": market, "B-USD": market | {"status": "PAUSED"}, "C-USD": market | {"nextFundingRate": ""}}
    }
    (read,) = dydx.parse(body, None)
    assert (read.symbol, read.mark_price) == ("A-USD", None)
    with pytest.raises(KeyError):
        dydx.parse({"markets": {"A-USD": {"status": "ACTIVE"}}}, None)


def test_the_recorded_hyperliquid_lists_are_joined_by_position(sample):
    raw = json.loads(sample("hyperliquid/metaAndAssetCtxs.json"))
    read = hyperliquid.parse_contexts(raw, None)

    assert [f.symbol for f in read] == [f"{coin['name']}-USD" for coin in raw[0]["universe"]]
    bitcoin = next(f for f in read if f.symbol == "BTC-USD")
    assert bitcoin[1:4] == (-0.00058163, 1, 98818.0)


def test_hyperliquid_lists_of_different_lengths_are_never_joined():
    with pytest.raises(SourceChanged, match="coins"):
        ask(hyperliquid.ASSET_CONTEXTS, form="error200")


def test_delisted_coins_are_skipped_together_with_their_context():
    universe = [{"name": "OLD", "isDelisted": True}, {"name": "BTC", "isDelisted": False}]
    (read,) = hyperliquid.parse_contexts([{"universe": universe}, [{"funding": "0.5"}, {"funding": "0.1"}]], None)
    assert (read.symbol, read.period_rate, read.mark_price) == ("BTC-USD", 0.1, None)


def test_an_answer_of_zeros_is_no_market():
    zeros = {"funding": "0", "markPx": "0.0"}
    assert hyperliquid.parse_contexts([{"universe": [{"name": "BTC"}]}, [zeros]], None) == ()
    market = {"status": "ACTIVE", "oraclePrice": "0", "nextFundingRate": "0"}
    assert dydx.parse({"markets": {"BTC-USD": market}}, None) == ()


def test_forecasts_are_sorted_by_venue_and_use_the_names_of_that_venue():
    terms = {"fundingRate": "0.0002", "nextFundingTime": 1800000000000, "fundingIntervalHours": 4}
    coins = [["kPEPE", [["BinPerp", terms], ["HlPerp", terms], ["BybitPerp", None]]]]
    fill = [[f"C{i}", [["BinPerp", None]]] for i in range(29)]
    binance, on_bybit = hyperliquid.parse_predictions(coins + fill, None)

    assert (binance.venue, on_bybit) == ("binance", VenueFundings("bybit", (), predicted=True))
    when = datetime.fromtimestamp(1800000000, UTC)
    assert binance.fundings == (Funding("1000PEPE-USDT", 0.0002, 4, None, when),)
    with pytest.raises(SourceEmpty):
        hyperliquid.parse_predictions(coins, None)


READERS = [
    binance_futures.parse_premiums,
    binance_futures.parse_intervals,
    bybit.parse,
    okx_funding.parse_rates,
    okx_funding.parse_marks,
    dydx.parse,
    hyperliquid.parse_contexts,
    hyperliquid.parse_predictions,
]


@pytest.mark.parametrize("body", [None, {}, "<html>", 7, [None], {"data": None}])
@pytest.mark.parametrize("parse", READERS)
def test_another_body_is_never_read_as_rates(parse, body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, None)


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (binance_futures.PREMIUMS, None),
        (binance_futures.PREMIUMS, "drift"),
        (bybit.LINEAR_TICKERS, None),
        (okx_funding.FUNDING_RATES, None),
        (okx_funding.FUNDING_RATES, "drift"),
        (okx_funding.MARK_PRICES, None),
        (dydx.PERPETUAL_MARKETS, None),
        (hyperliquid.ASSET_CONTEXTS, None),
        (hyperliquid.ASSET_CONTEXTS, "drift"),
    ],
)
def test_each_twin_lists_every_contract_of_the_world(source, form):
    read = ask(source, form=form)
    assert len(read) == len(perpetuals(WORLD)) >= source.least


def test_bybit_without_intervals_loses_only_the_rows_that_say_nothing():
    assert len(ask(bybit.LINEAR_TICKERS, form="drift")) == len(ask(bybit.LINEAR_TICKERS)) * 19 // 20


@pytest.mark.parametrize(
    ("source", "form", "error"),
    [
        (binance_futures.PREMIUMS, "error200", SourceRefused),
        (binance_futures.PREMIUMS, "geo", SourceDown),
        (bybit.LINEAR_TICKERS, "error200", SourceChanged),
        (bybit.LINEAR_TICKERS, "geo", SourceDown),
        (okx_funding.FUNDING_RATES, "error200", SourceError),
        (dydx.PERPETUAL_MARKETS, "error200", KeyError),
        (hyperliquid.PREDICTED_FUNDINGS, "error200", TypeError),
        (hyperliquid.PREDICTED_FUNDINGS, "empty", SourceEmpty),
    ],
)
def test_the_twins_faults_are_errors(source, form, error):
    with pytest.raises(error):
        ask(source, form=form)


@pytest.mark.parametrize(
    ("recorded", "source", "member"),
    [
        ("binance/premiumIndex-BTCUSDT-2026.json", binance_futures.PREMIUMS, lambda body: body),
        ("bybit/tickers-linear-BTCUSDT.json", bybit.LINEAR_TICKERS, lambda body: body["result"]["list"]),
        ("okx/funding-rate-BTC-USDT-SWAP.json", okx_funding.FUNDING_RATES, lambda body: body["data"]),
        ("dydx/perpetualMarkets.json", dydx.PERPETUAL_MARKETS, lambda body: list(body["markets"].values())),
        ("hyperliquid/metaAndAssetCtxs.json", hyperliquid.ASSET_CONTEXTS, lambda body: body[1]),
    ],
)
def test_the_twins_have_every_member_of_the_recorded_bodies(sample, recorded, source, member):
    real = json.loads(sample(recorded))
    real_row = real if "symbol" in real else member(real)[0]
    made_row = member(json.loads(fetch(WORLD, source.plan(None, {})).body))[0]
    kinds = {name: type(value) for name, value in real_row.items()}
    assert kinds == {name: type(made_row[name]) for name in kinds}
