"""The macro dashboard: figures, rates, prices and quotes, each with its own chain, with and without series."""

import datetime as dt
from itertools import islice

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
from tests.size import a_share
from tests.tools.desk import NOW
from tests.tools.selling import sell
from tools.free.economic_data import economic_data
from tools.premium.macro import CODES, FREQUENCIES, SOURCES, premium_macro
from tools.simulated import macro
from toolserver.errors import InvalidArguments, UpstreamUnavailable
from toolserver.registry.registry import Tier, operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

WORLD = World(1, NOW)
CHART, KEYED = "FRED.graph_csv", "FRED.observations"
EVERY_SOURCE_OF = {
    "economic.fed_rate": {"NYFed.effr", CHART},
    "economic.cpi": {"BLS.timeseries", CHART},
    "economic.unemployment": {"BLS.timeseries", CHART},
    "economic.gdp_growth": {"DBnomics.us_real_gdp_growth", CHART},
    "economic.treasury_10y": {"Treasury.par_yield_curve", CHART},
    "forex": {"Frankfurter.usd_timeseries", "ECB.reference_rates_90d", "CurrencyApi.usd_rates"},
    "commodities.gold": {"GoldApi.xau_spot", "Kraken.ticker", "Chainlink.price_feed", "Yahoo.chart"},
    "commodities.oil": {CHART, "Datahub.wti_daily", "Yahoo.chart"},
    "commodities.nat_gas": {CHART, "Datahub.henry_hub_daily", "Yahoo.chart"},
    "markets.spy": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"},
    "markets.dia": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"},
    "markets.qqq": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"},
    "markets.vix": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote", "Cboe.vix_history"},
}
NAMES = sorted(set.union(*EVERY_SOURCE_OF.values()))


def flat(payload):
    """The sections by path."""
    found = {"forex": payload["forex"]}
    for part in ("economic", "commodities", "markets"):
        found |= {f"{part}.{name}": value for name, value in payload[part].items()}
    return found


@pytest.fixture(scope="module")
def undisturbed():
    """What the tool says when nothing is down, by `history`: composed once."""
    known = {}

    async def read(compose, history=None):
        if history not in known:
            known[history] = flat((await compose(premium_macro, {"history": history})).json)
        return known[history]

    return read


def holds(given, wanted):
    if isinstance(wanted, dict):
        return all(name in given and holds(given[name], value) for name, value in wanted.items())
    return given == (pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted)


async def test_the_cpi_has_the_yearly_change_that_the_free_tool_says_and_no_other_figure_has_one(compose):
    made = (await compose(premium_macro)).json["economic"]
    yearly = (await compose(economic_data)).json["cpi"]["yoy_percent"]
    assert made["cpi"]["yoy_percent"] == yearly
    assert yearly is not None
    assert [name for name, figure in made.items() if "yoy_percent" in figure] == ["cpi"]
    without_bls = (await compose(premium_macro, down={"BLS.timeseries"})).json["economic"]
    assert without_bls["cpi"] | {"source": ""} == made["cpi"] | {"source": ""}  # from FRED, which has both indices too


async def test_every_value_is_the_worlds(compose):
    made = await compose(premium_macro)

    assert holds(made.json, ROUTES.expectations["pro/macro"](WORLD, {}))
    assert made.notes.warnings == []


@pytest.mark.parametrize("instant", [(2026, 7, 4, 3), (2026, 12, 27, 15), (2027, 1, 2, 12), (2027, 3, 15, 17, 30)])
async def test_on_weekends_and_around_new_year_too(compose, instant):
    world = World(4, dt.datetime(*instant, tzinfo=dt.UTC).timestamp())
    made = await compose(premium_macro, world=world)

    assert holds(made.json, ROUTES.expectations["pro/macro"](world, {}))
    assert made.notes.warnings == []


async def test_every_member_is_there_with_its_type(compose):
    made = (await compose(premium_macro)).json

    assert list(made["economic"]) == ["fed_rate", "cpi", "unemployment", "gdp_growth", "treasury_10y"]
    for figure in made["economic"].values():
        assert [type(figure[name]) for name in ("value", "date", "source", "unit")] == [float, str, str, str]
        assert dt.date.fromisoformat(figure["date"])
        assert ":" in figure["source"]
    assert set(made["forex"]["rates"]) == set(CODES)
    assert list(made["commodities"]) == ["gold", "silver", "oil", "nat_gas"]
    assert made["commodities"]["silver"] is None
    assert set(made["commodities"]["gold"]) == {"price_usd", "source", "as_of"}
    assert set(made["commodities"]["oil"]) == {"price_usd", "date", "source"}
    for quote in made["markets"].values():
        assert [type(quote[name]) for name in ("price", "change", "change_percent")] == [float] * 3
        assert quote["as_of"].endswith("Z")
    assert all(isinstance(text, str) and text for text in made["notes"].values())
    assert set(made["notes"]) == {"cadence", "silver", "commodities", "vix", "licence"}


async def test_without_history_there_is_no_series_anywhere(compose):
    made = (await compose(premium_macro)).json

    assert not any("series" in figure for figure in made["economic"].values())
    assert "series" not in made["forex"]


async def test_history_adds_the_30_newest_observations_at_each_frequency(compose):
    made = (await compose(premium_macro, {"history": "30d"})).json
    plain = (await compose(premium_macro)).json

    days = list(islice(macro.days_out(WORLD, macro.bank_day, macro.same_evening), 30))[::-1]
    assert made["economic"]["treasury_10y"]["series"] == [
        {"date": str(day), "value": macro.level(WORLD, "treasury_10y", day)} for day in days
    ]
    for name, figure in made["economic"].items():
        dates = [point["date"] for point in figure["series"]]
        assert len(dates) == 30
        assert dates == sorted(set(dates))
        assert figure["series"][-1] == {"date": figure["date"], "value": figure["value"]}
        assert {key: value for key, value in figure.items() if key != "series"} == plain["economic"][name]
    assert set(made["notes"]) - set(plain["notes"]) == {"history"}


@pytest.mark.slow("a call for each series and each history")
async def test_monthly_and_quarterly_series_have_months_and_quarters(compose):
    made = (await compose(premium_macro, {"history": "30d"})).json["economic"]

    for name, months in (("cpi", 1), ("unemployment", 1), ("gdp_growth", 3)):
        dates = [dt.date.fromisoformat(point["date"]) for point in made[name]["series"]]
        assert {date.day for date in dates} == {1}
        assert {date.month % months for date in dates} == {1 % months}
    assert "2025-10-01" not in {point["date"] for point in made["cpi"]["series"]}  # never published: a gap
    assert dict.fromkeys(FREQUENCIES) == dict.fromkeys(made)


async def test_history_of_rates_has_the_30_newest_fixings_of_each_currency(compose):
    forex = (await compose(premium_macro, {"history": "30d"})).json["forex"]

    days = list(islice(macro.days_out(WORLD, macro.fixing_day, macro.afternoon), 30))[::-1]
    assert set(forex["series"]) == set(CODES)
    for code, points in forex["series"].items():
        assert [point["date"] for point in points] == [str(day) for day in days]
        assert points[-1]["value"] == forex["rates"][code]
        assert [p["value"] for p in points] == pytest.approx(
            [macro.per_usd(WORLD, code, day) for day in days], rel=1e-4
        )


@pytest.mark.parametrize("name", EVERY_SOURCE_OF)
async def test_a_section_whose_sources_are_all_down_is_null_and_warned_of(compose, undisturbed, name):
    usual = await undisturbed(compose)
    down = EVERY_SOURCE_OF[name]
    lost = {other for other, sources in EVERY_SOURCE_OF.items() if sources <= down}

    made = await compose(premium_macro, down=down)

    found = flat(made.json)
    assert {other for other in EVERY_SOURCE_OF if found[other] is None} == lost
    warned = {w.section for w in made.notes.warnings if w.code == "section_unavailable"}
    assert warned == lost
    untouched = {other for other, sources in EVERY_SOURCE_OF.items() if not sources & down}
    assert {other: found[other] for other in untouched} == {other: usual[other] for other in untouched}


@pytest.mark.parametrize("history", [None, "30d"])
@pytest.mark.parametrize("name", a_share(NAMES, 3, first=1))
async def test_one_source_down_costs_no_section_and_changes_no_other(compose, undisturbed, name, history):
    """Sections are known by name: a missing source never shifts another one's values."""
    usual = await undisturbed(compose, history)
    made = await compose(premium_macro, {"history": history}, down={name})

    found = flat(made.json)
    assert {path for path, value in found.items() if value is None} == {"commodities.silver"}
    for path, sources in EVERY_SOURCE_OF.items():
        if name not in sources:
            assert found[path] == usual[path], path
    assert {w.source for w in made.notes.warnings} <= {name}


@pytest.mark.parametrize("form", ["empty", "drift", "error200", "limited", "status:404"])
@pytest.mark.parametrize("name", a_share(NAMES, 3))
async def test_no_fault_of_a_source_becomes_a_number(compose, undisturbed, name, form):
    routes = [route for route in ROUTES.all if route.source == name]
    if not any(form in route.forms for route in routes):
        return
    usual = await undisturbed(compose)
    found = flat((await compose(premium_macro, forms={name: form})).json)

    for path, value in found.items():
        if value is None or path == "forex" or usual[path] is None:
            continue
        key = "price" if path.startswith("markets.") else "value" if path.startswith("economic.") else "price_usd"
        assert value[key] == pytest.approx(usual[path][key], rel=0.06), path


async def test_all_down_is_an_error_and_not_sold(compose):
    with pytest.raises(SourceError):
        await compose(premium_macro, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_macro, {"history": "30d"}, down={"*"})


async def test_a_part_of_it_is_sold_with_a_warning():
    sale = await sell(premium_macro, down=EVERY_SOURCE_OF["forex"])

    assert sale.paid == 2
    assert sale.body["forex"] is None
    assert [w["section"] for w in sale.body["warning"]] == ["forex"]


async def test_a_complete_one_costs_two_credits_and_has_no_warning():
    sale = await sell(premium_macro, {"history": "30d"})

    assert sale.paid == 2
    assert "warning" not in sale.body
    assert sale.body["endpoint"] == "/api/pro/macro"
    assert {s["status"] for s in sale.body["_meta"]["sources"]} == {"live"}


async def test_each_figure_is_listed_with_its_own_source_and_no_other(compose):
    made = await compose(premium_macro)
    listed = {note.section: note.source.name for note in made.notes.sources}

    assert listed["economic.cpi"] == "BLS.timeseries"
    assert listed["commodities.gold"] == "GoldApi.xau_spot"
    assert len(listed) == len(made.notes.sources) == len(EVERY_SOURCE_OF)
    assert {name for name, _ in made.desk.asked} <= {source.name for source in SOURCES}


async def test_a_key_for_fred_is_used_where_it_comes_first(compose):
    made = await compose(premium_macro, keys={"FRED_API_KEY": "sim-1"})

    assert made.json["economic"]["gdp_growth"]["source"] == "fred:A191RL1Q225SBEA"
    assert made.json["economic"]["fed_rate"]["source"] == "nyfed:EFFR"
    assert {q.series_id for name, q in made.desk.asked if name == KEYED} == {
        "A191RL1Q225SBEA", "DCOILWTICO", "DHHNGSP",
    }  # fmt: skip


@pytest.mark.parametrize("history", ["24h", "30", "all"])
async def test_another_history_is_a_bad_request(history):
    with pytest.raises(InvalidArguments, match="history"):
        await sell(premium_macro, {"history": history})


def test_the_operation_is_what_the_price_list_says():
    operation = operation_of(premium_macro)

    assert (operation.tier, operation.credits, operation.ttl_s, operation.sla_s) == (Tier.PREMIUM, 2, 300, 1800)
    assert operation.path == "/api/pro/macro"
    assert operation.input_schema["properties"]["history"]["enum"] == ["30d"]
