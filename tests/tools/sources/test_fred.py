"""FRED: observations with a key, charts without."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.fred  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated import macro
from tools.sources.fred import (
    GRAPH_CSV,
    OBSERVATIONS,
    GraphQuery,
    ObservationsQuery,
    graph_request,
    observations_request,
    parse_graph,
    parse_observations,
)
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceRefused, SourceUnusable
from toolserver.world.model import World

KEYS = {"FRED_API_KEY": "sim-1"}
YIELDS = GraphQuery(("DGS10", "DGS2"), date(2026, 9, 1))


def test_without_a_key_the_observations_are_not_usable():
    assert observations_request(ObservationsQuery("DFF"), {}) is None
    with pytest.raises(SourceUnusable):
        ask(OBSERVATIONS, ObservationsQuery("DFF"))


def test_the_newest_observations_are_asked_for():
    asked = observations_request(ObservationsQuery("DFF", 45), KEYS)

    assert (asked.params["series_id"], asked.params["sort_order"], asked.params["limit"]) == ("DFF", "desc", "45")
    assert "sim-1" not in asked.url


def test_a_recorded_answer_parses_to_its_values(sample):
    found = parse_observations(json.loads(sample("fred/observations-GDP.json")), ObservationsQuery("GDP"))["GDP"]

    assert found[0] == (date(1947, 1, 1), 243.164)
    assert found[-1] == (date(2024, 7, 1), 29349.924)
    assert date(1946, 1, 1) not in dict(found)  # "." is no value


def test_a_recorded_single_observation_parses(sample):
    body = json.loads(sample("fred/observations-UNRATE-single.json"))

    assert parse_observations(body, ObservationsQuery("UNRATE")) == {"UNRATE": ((date(2019, 3, 1), 3.8),)}


def test_a_recorded_refusal_is_one(sample):
    with pytest.raises(SourceRefused):
        parse_observations(json.loads(sample("fred/error-400-key-not-registered.json")), ObservationsQuery("DFF"))


def test_a_refusal_never_quotes_the_key():
    body = {"error_code": 400, "error_message": "The value for variable api_key (0123456789) is not registered."}
    with pytest.raises(SourceRefused) as caught:
        parse_observations(body, ObservationsQuery("DFF"))
    assert "0123456789" not in caught.value.reason


def test_a_recorded_chart_parses_and_empty_cells_are_gaps(sample):
    text = sample("fred/fredgraph-DCOILWTICO.csv").decode()
    found = parse_graph(text, GraphQuery(("DCOILWTICO",), date(2021, 1, 1)))["DCOILWTICO"]

    assert found[0] == (date(2021, 1, 5), 49.78)
    assert found[-1] == (date(2026, 1, 5), 58.10)
    assert date(2021, 1, 18) not in dict(found)
    assert len(found) == sum(not line.endswith(",") for line in text.splitlines()[1:])


def test_a_chart_cut_inside_its_last_number_is_not_read(sample):
    text = sample("fred/fredgraph-DCOILWTICO.csv").decode()
    with pytest.raises(SourceChanged):
        parse_graph(text[:-3], GraphQuery(("DCOILWTICO",), date(2021, 1, 1)))


def test_ten_missing_values_in_a_row_are_no_answer():
    rows = [{"date": f"2027-01-{day:02}", "value": "."} for day in range(1, 13)] + [
        {"date": "2026-12-01", "value": "4"}
    ]
    with pytest.raises(SourceEmpty):
        parse_observations({"observations": rows}, ObservationsQuery("DGS10"))
    with pytest.raises(SourceEmpty):
        ask(OBSERVATIONS, ObservationsQuery("DGS10"), form="empty", keys=KEYS)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("", SourceChanged),
        ("<!DOCTYPE html>\n<html></html>\n", SourceChanged),
        ("observation_date,DGS10\n2027-01-14,4.03\n", SourceChanged),
        ("observation_date,DGS10,DGS2\n", SourceEmpty),
        ("observation_date,DGS10,DGS2\n2027-01-14,4.03,\n", SourceEmpty),
        ("when,DGS10,DGS2\n2027-01-14,4.03,3.44\n", KeyError),
        ("observation_date,DGS10,DGS2\n2027-01-14,403,3.44\n", ValueError),
    ],
    ids=["empty", "html", "an id missing", "no rows", "an id without values", "no date column", "not a yield"],
)
def test_a_chart_that_does_not_hold_what_was_asked_is_not_read(body, error):
    with pytest.raises(error):
        parse_graph(body, YIELDS)


def test_the_chart_names_its_series_in_one_request_and_the_day_is_no_part_of_the_cache_key():
    assert graph_request(YIELDS, {}).params == {"id": "DGS10,DGS2", "cosd": "2026-09-01"}
    assert GRAPH_CSV.key(YIELDS) == GRAPH_CSV.key(YIELDS._replace(since=date(2026, 9, 2)))


@given(st.dictionaries(st.dates(), st.floats(1, 20) | st.just("."), min_size=1))
def test_parse_never_invents_or_drops_a_value(values):
    rows = [{"date": day.isoformat(), "value": str(value)} for day, value in values.items()]
    known = {day: value for day, value in values.items() if value != "."}
    if all(values[day] == "." for day in sorted(values)[-10:]):
        return
    assert dict(parse_observations({"observations": rows}, ObservationsQuery("DGS10"))["DGS10"]) == known


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_of_the_chart_agrees_with_the_twin_of_the_observations(form):
    chart = ask(GRAPH_CSV, YIELDS, form=form)
    by_key = ask(OBSERVATIONS, ObservationsQuery("DGS10"), keys=KEYS)["DGS10"]

    assert chart["DGS10"] == tuple(o for o in by_key if o.date >= YIELDS.since)
    assert chart["DGS10"][-1] == (date(2027, 1, 13), macro.level(World(1, NOW), "treasury_10y", date(2027, 1, 13)))
    assert date(2026, 12, 25) not in dict(chart["DGS10"])


def test_the_funds_rate_has_a_value_on_weekends_too():
    found = dict(ask(GRAPH_CSV, GraphQuery(("DFF",), date(2027, 1, 1)))["DFF"])

    assert found[date(2027, 1, 9)] == found[date(2027, 1, 10)] == found[date(2027, 1, 8)]


def test_the_twin_refuses_other_keys_and_knows_no_other_series():
    with pytest.raises(SourceDown):
        ask(OBSERVATIONS, ObservationsQuery("DFF"), keys={"FRED_API_KEY": "other"})
    with pytest.raises(SourceDown):
        ask(GRAPH_CSV, GraphQuery(("NOPE",), date(2027, 1, 1)))
