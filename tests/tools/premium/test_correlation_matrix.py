"""The correlation matrix: six pairs of four series, against scipy on what the world serves."""

import datetime as dt
from itertools import combinations, pairwise

import pytest

import tools.simulated.compositions
import tools.simulated.datahub
import tools.simulated.federal_reserve
import tools.simulated.us_statistics  # noqa: F401 - they serve
from tests.pages import MadePages
from tests.tools import desk
from tests.tools.desk import NOW
from tests.tools.scipys import pearsonr
from tests.tools.selling import sell
from tools.premium.correlation_matrix import ASSETS, METHOD, matrix, premium_correlation_matrix
from tools.simulated import datahub, federal_reserve, fred, macro
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import Tier, operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
SYMBOLS = ["OIL_WTI", "TREASURY_10Y", "TREASURY_2Y", "USD_INDEX"]
CHART = "FRED.graph_csv"
EVERY_SOURCE_OF = {
    "OIL_WTI": {CHART, "Datahub.wti_daily"},
    "TREASURY_10Y": {"Treasury.par_yield_curve", CHART},
    "TREASURY_2Y": {"Treasury.par_yield_curve", CHART},
    "USD_INDEX": {CHART, "FederalReserve.broad_dollar_index"},
}


def served(world):
    """The last 75 days of each series, as the first provider of each has them."""
    since = (world.time - dt.timedelta(hours=5)).date() - dt.timedelta(days=75)

    def charted(series_id):
        found = {}
        for day, value in fred.SERIES[series_id](world):
            if day < since:
                return found
            if value is not None:
                found[day] = value

    def yields(name):
        found = {}
        for day in macro.days_out(world, macro.bank_day, macro.same_evening):
            if day < since:
                return found
            found[day] = macro.level(world, name, day)

    return {
        "OIL_WTI": charted("DCOILWTICO"),
        "TREASURY_10Y": yields("treasury_10y"),
        "TREASURY_2Y": yields("treasury_2y"),
        "USD_INDEX": charted("DTWEXBGS"),
    }


def by_scipy(one, other, *, differences=()):
    """r and the number of returns on the newest 31 common days; `differences`: which of the two are taken so."""
    days = sorted(one.keys() & other.keys())[-31:]
    steps = []
    for place, values in enumerate((one, other)):
        change = (lambda a, b: b - a) if place in differences else (lambda a, b: b / a - 1)
        steps.append([change(values[a], values[b]) for a, b in pairwise(days)])
    return pearsonr(*steps).statistic, len(days) - 1, days


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("instant", [(2027, 1, 15, 8), (2026, 7, 6, 3), (2026, 9, 30, 22), (2027, 1, 4, 12)])
async def test_every_r_is_scipys_on_the_same_days(compose, seed, instant):
    world = World(seed, dt.datetime(*instant, tzinfo=dt.UTC).timestamp())
    made = (await compose(premium_correlation_matrix, world=world)).json
    series = served(world)

    assert {(pair["a"], pair["b"]) for pair in made["pairs"]} == set(combinations(SYMBOLS, 2))
    for pair in made["pairs"]:
        r, n, days = by_scipy(series[pair["a"]], series[pair["b"]])
        assert pair["pearson_r"] == pytest.approx(r, abs=1e-4)
        assert pair["n_observations"] == n == 30
        assert (pair["first_date"], pair["last_date"]) == (str(days[1]), str(days[-1]))


async def test_pairs_with_a_yield_also_carry_r_by_its_differences(compose):
    made = (await compose(premium_correlation_matrix)).json
    series = served(WORLD)

    for pair in made["pairs"]:
        rates = [place for place, name in enumerate((pair["a"], pair["b"])) if name.startswith("TREASURY")]
        if rates:
            r, _, _ = by_scipy(series[pair["a"]], series[pair["b"]], differences=rates)
            assert pair["pearson_r_yield_diff"] == pytest.approx(r, abs=1e-4)
        else:
            assert pair["pearson_r_yield_diff"] is None


async def test_the_world_expects_the_same(compose):
    made = (await compose(premium_correlation_matrix)).json
    expected = ROUTES.expectations["pro/correlation-matrix"](WORLD, {})

    assert made["sample_size"]["data_availability"] == expected["data_availability"]
    for pair in made["pairs"]:
        wanted = expected["pairs"][f"{pair['a']} {pair['b']}"]
        assert pair["pearson_r"] == pytest.approx(wanted["pearson_r"], abs=1e-4)
        assert pair["n_observations"] == wanted["n_observations"]


async def test_every_member_is_there_with_its_type(compose):
    made = await compose(premium_correlation_matrix)
    body = made.json

    assert (body["window"], body["method"]) == ("30d", METHOD)
    assert [(a["symbol"], a["asset_class"]) for a in body["assets"]] == [
        ("OIL_WTI", "commodity"), ("TREASURY_10Y", "rates"), ("TREASURY_2Y", "rates"), ("USD_INDEX", "fx"),
    ]  # fmt: skip
    series = served(WORLD)
    for asset in body["assets"]:
        days = sorted(series[asset["symbol"]])
        assert asset["observations"] == len(days)
        assert (asset["first_date"], asset["last_date"]) == (str(days[0]), str(days[-1]))
        assert ":" in asset["source"]
    assert body["sample_size"] == {
        "assets_requested": 4,
        "assets_with_data": 4,
        "pairs_computed": 6,
        "data_availability": {name: len(found) for name, found in series.items()},
    }
    assert set(body["notes"]) == {"as_of", "alignment", "yields", "caution"}
    assert "2027-01-14" in body["notes"]["as_of"]
    assert made.notes.warnings == []


async def test_pairs_stand_by_strength_and_are_called_what_they_are(compose):
    pairs = (await compose(premium_correlation_matrix)).json["pairs"]

    sizes = [abs(pair["pearson_r"]) for pair in pairs]
    assert sizes == sorted(sizes, reverse=True)
    for pair in pairs:
        r = pair["pearson_r"]
        strength = ["negligible", "weak", "moderate", "strong"][sum(abs(r) >= edge for edge in (0.2, 0.4, 0.7))]
        sign = "none" if abs(r) < 0.05 else "positive" if r > 0 else "negative"
        assert (pair["relationship"], pair["direction"]) == (strength, sign)
        assert round(r, 4) == r


async def test_the_matrix_is_complete_symmetric_and_1_on_the_diagonal(compose):
    body = (await compose(premium_correlation_matrix)).json
    table = body["matrix"]

    assert list(table) == SYMBOLS
    for a in SYMBOLS:
        assert list(table[a]) == SYMBOLS
        assert table[a][a] == 1.0
        assert all(table[a][b] == table[b][a] for b in SYMBOLS)
    for pair in body["pairs"]:
        assert table[pair["a"]][pair["b"]] == pair["pearson_r"]


@pytest.mark.parametrize("name", SYMBOLS)
async def test_an_asset_that_nobody_has_stands_without_data_and_its_pairs_are_null(compose, name):
    down = EVERY_SOURCE_OF[name]
    lost = {other for other, sources in EVERY_SOURCE_OF.items() if sources <= down}
    usual = (await compose(premium_correlation_matrix)).json
    made = await compose(premium_correlation_matrix, down=down)

    for asset in made.json["assets"]:
        if asset["symbol"] in lost:
            assert asset["observations"] == 0
            assert [asset[key] for key in ("first_date", "last_date", "source")] == [None] * 3
    kept = [other for other in SYMBOLS if other not in lost]
    assert {(p["a"], p["b"]) for p in made.json["pairs"]} == set(combinations(kept, 2))
    for a, b in combinations(SYMBOLS, 2):
        if {a, b} & lost:
            assert made.json["matrix"][a][b] is None
        elif "TREASURY" in a and "TREASURY" in b:  # the same publisher as before
            assert made.json["matrix"][a][b] == usual["matrix"][a][b]
    assert {w.section for w in made.notes.warnings if w.code == "section_unavailable"} == {
        f"assets.{other}" for other in lost
    }
    assert made.json["sample_size"]["assets_with_data"] == len(kept)


@pytest.mark.parametrize("name", sorted(set.union(*EVERY_SOURCE_OF.values())))
async def test_one_source_down_costs_no_pair(compose, name):
    made = await compose(premium_correlation_matrix, down={name})

    assert len(made.json["pairs"]) == 6
    assert {w.source for w in made.notes.warnings} <= {name}


async def test_the_fallbacks_are_compared_as_they_are(compose):
    made = await compose(premium_correlation_matrix, down={CHART})
    sources = {asset["symbol"]: asset["source"] for asset in made.json["assets"]}

    assert sources["OIL_WTI"] == "eia:RWTC"
    assert sources["USD_INDEX"] == "federalreserve:H10/JRXWTFB_N.B"
    oil = {day: macro.level(WORLD, "oil", day) for day in datahub.days(WORLD, 60)}
    dollar = {
        day: macro.level(WORLD, "dollar_index", day) for day in federal_reserve.days(WORLD, 60) if macro.bank_day(day)
    }
    [pair] = [p for p in made.json["pairs"] if (p["a"], p["b"]) == ("OIL_WTI", "USD_INDEX")]
    assert pair["pearson_r"] == pytest.approx(by_scipy(oil, dollar)[0], abs=1e-4)


async def test_with_a_key_fred_gives_the_same(compose):
    usual = (await compose(premium_correlation_matrix)).json
    keyed = (await compose(premium_correlation_matrix, keys={"FRED_API_KEY": "sim-1"}, down={CHART})).json

    assert keyed["matrix"] == usual["matrix"]


async def test_a_series_that_stands_still_has_no_correlation_and_says_so(compose):
    still = World(1, NOW, Edits(pins={"macro.oil": [(0, 1e12, 60.0)]}))
    made = await compose(premium_correlation_matrix, world=still)

    assert {(p["a"], p["b"]) for p in made.json["pairs"]} == set(combinations(SYMBOLS[1:], 2))
    assert made.json["assets"][0]["observations"] > 30
    assert {(w.section, w.code) for w in made.notes.warnings} == {
        (f"pairs.OIL_WTI.{other}", "insufficient_sample") for other in SYMBOLS[1:]
    }


async def test_two_series_that_move_alike_correlate_fully(compose):
    edits = Edits()
    for n in range(120):
        day, value = NOW - n * 86400, 4 + 0.01 * (n * 7 % 11)
        edits.pins.setdefault("macro.treasury_10y", []).append((day - 43200, day + 43200, value))
        edits.pins.setdefault("macro.treasury_2y", []).append((day - 43200, day + 43200, 8 - value))
    made = await compose(premium_correlation_matrix, world=World(1, NOW, edits))

    [pair] = [p for p in made.json["pairs"] if (p["a"], p["b"]) == ("TREASURY_10Y", "TREASURY_2Y")]
    assert pair["pearson_r_yield_diff"] == -1.0
    assert pair["pearson_r"] == pytest.approx(-1, abs=0.01)
    assert (pair["relationship"], pair["direction"]) == ("strong", "negative")
    assert made.json["pairs"][0] == pair


async def test_all_down_is_an_error_and_not_sold(compose):
    with pytest.raises(SourceError):
        await compose(premium_correlation_matrix, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_correlation_matrix, down={"*"})


async def test_a_matrix_without_any_pair_is_given_and_not_charged():
    down = {"FRED.graph_csv", "Treasury.par_yield_curve", "FederalReserve.broad_dollar_index"}
    sale = await sell(premium_correlation_matrix, down=down)

    assert sale.paid == 0
    assert sale.outcome.no_charge == "empty_result"
    assert sale.body["pairs"] == []
    assert sale.body["assets"][0]["observations"] > 30


async def test_a_complete_matrix_costs_two_credits_and_has_no_warning():
    sale = await sell(premium_correlation_matrix)

    assert sale.paid == 2
    assert "warning" not in sale.body
    assert sale.body["endpoint"] == "/api/pro/correlation-matrix"
    assert sale.body["_meta"]["untrusted_text"] is False


STOP = dt.date(2026, 12, 10)


def stop_fred(monkeypatch):
    def stopped(world):
        return ((day, value) for day, value in usual(world) if day < STOP)

    usual = fred.SERIES["DCOILWTICO"]
    monkeypatch.setitem(fred.SERIES, "DCOILWTICO", stopped)
    monkeypatch.setattr(desk, "PAGES", MadePages())  # those of another world than all other tests'


async def test_a_series_that_ended_long_ago_is_read_elsewhere(monkeypatch):
    stop_fred(monkeypatch)
    sale = await sell(premium_correlation_matrix)
    oil = next(asset for asset in sale.body["assets"] if asset["symbol"] == "OIL_WTI")

    assert (oil["source"], sale.body["stale"], sale.paid) == ("eia:RWTC", False, 2)


async def test_common_days_of_long_ago_make_the_answer_stale_and_free(monkeypatch):
    def stopped(world, name):
        return [(day, price) for day, price in usual(world, name) if day < STOP.isoformat()]

    usual = datahub._rows
    monkeypatch.setattr(datahub, "_rows", stopped)
    stop_fred(monkeypatch)
    sale = await sell(premium_correlation_matrix)

    assert sale.body["stale"] is True
    assert (sale.paid, sale.outcome.no_charge) == (0, "stale_data")
    assert ("pairs", "stale_data") in {(w["section"], w["code"]) for w in sale.body["warning"]}


def test_no_pair_makes_a_matrix_of_nulls_around_the_diagonal():
    empty = matrix([])
    assert {empty[a][b] for a in ASSETS for b in ASSETS if a != b} == {None}
    assert {empty[a][a] for a in ASSETS} == {1.0}


def test_the_operation_is_what_the_price_list_says():
    operation = operation_of(premium_correlation_matrix)

    assert (operation.tier, operation.credits, operation.ttl_s, operation.sla_s) == (Tier.PREMIUM, 2, 1800, 3600)
    assert operation.path == "/api/pro/correlation-matrix"
    assert operation.input_schema["properties"] == {}
