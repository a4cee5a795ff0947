"""The economic data tool: eight figures, each with its own chain of publishers."""

from datetime import UTC, date, datetime

import pytest

import tools.simulated.fred
import tools.simulated.freddiemac
import tools.simulated.us_statistics  # noqa: F401 - serves
from tests.tools.desk import NOW
from tools.free.economic_data import economic_data, figure
from tools.parsing.series import series
from tools.shared.macro import INDICATORS, Sourced
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

PUBLISHERS = {
    "NYFed.effr", "BLS.timeseries", "DBnomics.us_real_gdp_growth", "Treasury.par_yield_curve", "FreddieMac.pmms_30y",
}  # fmt: skip
KEYS = {"FRED_API_KEY": "sim-1"}


def at(*instant):
    return World(1, datetime(*instant, tzinfo=UTC).timestamp())


async def test_every_figure_is_the_worlds_with_its_date_and_the_one_before(compose):
    made = await compose(economic_data)

    for name, expected in ROUTES.expectations["economic-data"](World(1, NOW), {}).items():
        assert {key: made.json[name][key] for key in expected} == expected, name
    assert {name: figure["source"] for name, figure in made.json.items()} == {
        "fed_rate": "nyfed:EFFR",
        "cpi": "bls:CUSR0000SA0",
        "unemployment": "bls:LNS14000000",
        "gdp_growth": "dbnomics:BEA/NIPA-T10101/A191RL-Q",
        "treasury_10y": "treasury:BC_10YEAR",
        "treasury_2y": "treasury:BC_2YEAR",
        "mortgage_30y": "freddiemac:PMMS30",
        "yield_curve_2s10s": "derived:T10Y2Y",
    }
    assert made.notes.warnings == []


async def test_changes_and_the_spread_follow_from_the_values(compose):
    made = (await compose(economic_data)).json

    for each in made.values():
        assert each["change"] == pytest.approx(each["value"] - each["previous"], abs=1e-4)
    slope = made["yield_curve_2s10s"]
    assert slope["value"] == pytest.approx(made["treasury_10y"]["value"] - made["treasury_2y"]["value"])
    assert slope["date"] == made["treasury_10y"]["date"] == made["treasury_2y"]["date"]


async def test_only_consumer_prices_have_a_yearly_change(compose):
    made = (await compose(economic_data)).json

    assert made["cpi"]["yoy_percent"] == pytest.approx(2.8, abs=0.5)
    assert all(figure["yoy_percent"] is None for name, figure in made.items() if name != "cpi")


def test_the_yearly_change_is_that_of_the_unadjusted_index_as_bls_prints_it():
    adjusted = series([(date(2023, 8, 1), 306.1), (date(2024, 8, 1), 314.1), (date(2024, 9, 1), 314.7)])
    months = [(2023, 8, 307.026), (2023, 9, 307.789), (2024, 8, 314.796), (2024, 9, 315.301)]
    unadjusted = series((date(year, month, 1), value) for year, month, value in months)
    september = Sourced(adjusted, "bls", unadjusted)
    august = Sourced(adjusted[:-1], "bls", unadjusted[:-1])
    assert figure("index", august).yoy_percent == 2.5
    assert figure("index", september).yoy_percent == 2.4
    assert figure("index", Sourced(adjusted, "bls", unadjusted[:-1])).yoy_percent is None  # of another month
    assert figure("index", Sourced(adjusted, "fred")).yoy_percent is None


async def test_a_month_that_was_never_published_is_a_gap_and_not_a_repeat(compose):
    november = (await compose(economic_data, world=at(2025, 12, 20))).json["cpi"]
    a_year_later = (await compose(economic_data, world=at(2026, 11, 20))).json["cpi"]

    assert (november["date"], november["previous_date"]) == ("2025-11-01", "2025-09-01")
    assert a_year_later["date"] == "2026-10-01"
    assert a_year_later["yoy_percent"] is None


async def test_one_query_serves_both_labour_figures(compose):
    made = await compose(economic_data)

    assert len({query for name, query in made.desk.asked if name == "BLS.timeseries"}) == 1


async def test_a_young_year_is_read_together_with_the_year_before(compose):
    made = await compose(economic_data, world=at(2027, 1, 2))

    assert made.json["treasury_10y"]["date"] == "2026-12-31"
    assert {query.year for name, query in made.desk.asked if name == "Treasury.par_yield_curve"} == {2026, 2027}


async def test_an_older_year_is_read_alone(compose):
    made = await compose(economic_data, world=at(2026, 8, 3))

    assert {query.year for name, query in made.desk.asked if name == "Treasury.par_yield_curve"} == {2026}


async def test_a_year_that_stays_empty_is_not_papered_over_with_the_last_one(compose):
    made = await compose(economic_data, world=at(2027, 1, 9), forms={"Treasury.par_yield_curve": "empty"})

    assert made.json["treasury_10y"]["source"] == "fred:DGS10"


async def test_growth_comes_from_fred_when_there_is_a_key(compose):
    made = await compose(economic_data, keys=KEYS)

    assert made.json["gdp_growth"]["source"] == "fred:A191RL1Q225SBEA"
    assert made.notes.warnings == []


@pytest.mark.parametrize("keys", [{}, KEYS], ids=["chart", "key"])
async def test_fred_answers_for_every_publisher_that_is_down(compose, keys):
    usual = await compose(economic_data)
    made = await compose(economic_data, down=PUBLISHERS, keys=keys)

    assert {name: figure["source"] for name, figure in made.json.items()} == {
        "fed_rate": "fred:DFF",
        "cpi": "fred:CPIAUCSL",
        "unemployment": "fred:UNRATE",
        "gdp_growth": "fred:A191RL1Q225SBEA",
        "treasury_10y": "fred:DGS10",
        "treasury_2y": "fred:DGS2",
        "mortgage_30y": "fred:MORTGAGE30US",
        "yield_curve_2s10s": "derived:T10Y2Y",
    }
    for name in ("cpi", "unemployment", "gdp_growth", "mortgage_30y"):
        assert made.json[name] | {"source": ""} == usual.json[name] | {"source": ""}
    assert usual.json["cpi"]["yoy_percent"] is not None
    assert {w.code for w in made.notes.warnings} <= {"fallback_used"}


@pytest.mark.parametrize("name", sorted(PUBLISHERS))
async def test_one_publisher_down_costs_no_figure(compose, name):
    made = await compose(economic_data, down={name})

    assert all(made.json.values())
    assert {w.source for w in made.notes.warnings} == {name}


async def test_a_figure_that_nobody_gives_is_null_with_a_warning_and_the_others_stand(compose):
    made = await compose(economic_data, down={"BLS.timeseries", "FRED.graph_csv"})

    assert [name for name, figure in made.json.items() if figure is None] == ["cpi", "unemployment"]
    assert {(w.section, w.code) for w in made.notes.warnings} == {
        ("data.cpi", "section_unavailable"),
        ("data.unemployment", "section_unavailable"),
    }


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(economic_data, down={"*"})


def test_the_spread_is_in_points_and_growth_annualised():
    assert INDICATORS["yield_curve_2s10s"].unit == "percentage points"
    assert INDICATORS["gdp_growth"].unit == "percent, quarterly annualised"
    assert INDICATORS["cpi"].unit == "index 1982-84=100"
