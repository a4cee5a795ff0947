"""The funding rates tool: what it compares, and what it does when venues are silent."""

import pytest

import tools.simulated.binance_futures
import tools.simulated.bybit
import tools.simulated.dydx
import tools.simulated.hyperliquid
import tools.simulated.okx_funding  # noqa: F401 - they register their routes
from tests.tools.desk import NOW
from tools.free.funding_rates import funding_rates
from tools.parsing.funding import Funding, VenueFundings, largest
from tools.simulated.funding import perpetuals
from toolserver.upstream.source import SourceEmpty
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
BINANCE, BYBIT = "BinanceFutures.premium_index", "Bybit.linear_tickers"
OKX, DYDX, HYPERLIQUID = "OKX.funding_rates", "Dydx.perpetual_markets", "Hyperliquid.asset_contexts"


def test_the_largest_of_either_sign_come_first_and_the_absurd_is_dropped():
    def paid(rate, hours=8.0):
        return Funding("X-USDT", rate, hours, None, None)

    venue = VenueFundings(
        "bybit", (paid(0.001), paid(-0.001, 1), paid(0.0914, 8), paid(0.0), paid(9999 / 8760 / 100, 1))
    )
    chosen = [round(f.annualized_percent, 1) for _, f in largest([venue], 3)]
    assert chosen == [9999.0, -876.0, 109.5]


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_top_equals_the_world(compose, seed):
    world = World(seed, NOW)
    made = await compose(funding_rates, world=world)

    expected = ROUTES.expectations["funding-rates"](world, {})["top"]
    assert [{k: row[k] for k in expected[0]} for row in made.json["top"]] == expected
    assert [v["name"] for v in made.json["venues"]] == ["binance", "bybit", "hyperliquid", "dydx"]
    assert {v["status"] for v in made.json["venues"]} == {"ok"}
    assert made.notes.warnings == []
    assert not any(row["predicted"] for row in made.json["top"])


async def test_a_pinned_rate_leads(compose):
    world = World(1, NOW, Edits(pins={"funding.dydx.BTC": [(0, NOW + 1, -0.01)]}))
    made = await compose(funding_rates, world=world)
    first = made.json["top"][0]
    assert (first["venue"], first["symbol"], first["annualized_percent"]) == ("dydx", "BTC-USD", -8760)


@pytest.mark.parametrize("silent", ["binance", "bybit"])
async def test_okx_replaces_one_venue(compose, silent):
    made = await compose(funding_rates, down={{"binance": BINANCE, "bybit": BYBIT}[silent]})

    states = {v["name"]: (v["status"], v["markets"]) for v in made.json["venues"]}
    assert states[silent] == ("replaced", None)
    assert states["okx"] == ("ok", len(perpetuals(WORLD)))
    assert {row["venue"] for row in made.json["top"]}.isdisjoint({silent})
    assert [(w.section, w.code) for w in made.notes.warnings] == [(f"data.venues.{silent}", "fallback_used")]
    assert all(row["mark_price"] for row in made.json["top"])


async def test_when_both_are_silent_okx_stands_in_once_and_a_forecast_for_the_other(compose):
    made = await compose(funding_rates, down={BINANCE, BYBIT})

    states = {v["name"]: v["status"] for v in made.json["venues"]}
    assert states == {"binance": "replaced", "bybit": "predicted", "hyperliquid": "ok", "dydx": "ok", "okx": "ok"}
    forecast = [row for row in made.json["top"] if row["venue"] == "bybit"]
    assert forecast
    assert all(row["predicted"] and row["mark_price"] is None for row in forecast)
    assert len({(row["venue"], row["symbol"]) for row in made.json["top"]}) == 20


async def test_without_its_intervals_binance_is_not_compared(compose):
    made = await compose(funding_rates, forms={BINANCE: "empty"})
    assert made.json["venues"][0]["status"] == "replaced"


async def test_without_okx_both_are_forecast(compose):
    made = await compose(funding_rates, down={BINANCE, BYBIT, OKX})
    assert [v["status"] for v in made.json["venues"]] == ["predicted", "predicted", "ok", "ok"]


async def test_a_silent_venue_that_nothing_replaces_is_named(compose):
    made = await compose(funding_rates, down={DYDX})
    assert made.json["venues"][3] == {"name": "dydx", "status": "unavailable", "markets": None}
    assert [(w.section, w.code) for w in made.notes.warnings] == [("data.venues.dydx", "section_unavailable")]


async def test_one_venue_alone_is_no_comparison(compose):
    with pytest.raises(SourceEmpty, match="1 of 4 venues answered"):
        await compose(funding_rates, down={BINANCE, BYBIT, OKX, DYDX, "Hyperliquid.predicted_fundings"})


async def test_rates_without_mark_prices_say_so(compose):
    made = await compose(funding_rates, down={BINANCE}, forms={OKX: "drift"})  # the mark prices have no such form
    assert [(w.section, w.code) for w in made.notes.warnings] == [
        ("data.venues.binance", "fallback_used"),
        ("data.top", "field_missing"),
    ]
    assert len(made.json["top"]) == 20
