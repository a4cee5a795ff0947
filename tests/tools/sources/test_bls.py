"""BLS: two monthly series in one request."""

import copy
from datetime import date

import pytest

import tools.simulated.us_statistics  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated import macro
from tools.sources.bls import TIMESERIES, Years, parse, request
from toolserver.upstream.decode import count_rows
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceLimited, SourceRefused
from toolserver.world.model import World

YEARS = Years(2024, 2027)


def month(period, value, year="2026"):
    return {"year": year, "period": period, "periodName": "", "value": value, "footnotes": [{}]}


BODY = {
    "status": "REQUEST_SUCCEEDED",
    "responseTime": 150,
    "message": [],
    "Results": {
        "series": [
            {
                "seriesID": "CUSR0000SA0",
                "data": [month("M02", "327.460"), month("M01", "-"), month("M12", "325.1", "2025")],
            },
            {"seriesID": "LNS14000000", "data": [month("M13", "9.9", "2025"), month("M02", "4.4")]},
        ]
    },
}


def test_without_a_key_version_one_is_asked_for_both_series():
    asked = request(YEARS, {})

    assert asked.url == "https://api.bls.gov/publicAPI/v1/timeseries/data/"
    assert asked.json == {
        "seriesid": ["CUSR0000SA0", "LNS14000000", "CUUR0000SA0"],
        "startyear": "2024",
        "endyear": "2027",
    }


def test_with_a_key_version_two_is_asked_and_the_key_travels_in_the_body_only():
    asked = request(YEARS, {"BLS_API_KEY": "sim-1"})

    assert asked.url == "https://api.bls.gov/publicAPI/v2/timeseries/data/"
    assert asked.json["registrationkey"] == "sim-1"


def test_the_years_are_no_part_of_the_cache_key():
    assert TIMESERIES.key(Years(2023, 2026)) == TIMESERIES.key(YEARS)


def test_an_unpublished_month_is_a_gap_and_the_yearly_average_no_month():
    found = parse(BODY, YEARS)

    assert found.cpi == ((date(2025, 12, 1), 325.1), (date(2026, 2, 1), 327.46))
    assert found.unemployment_percent == ((date(2026, 2, 1), 4.4),)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Request could not be serviced, as the daily threshold for total number of requests …", SourceLimited),
        ("The key:0123456789abcdef provided by the User is invalid.", SourceRefused),
        ("Something new", SourceChanged),
    ],
)
def test_a_refusal_with_status_200_is_told_apart_and_quotes_no_key(message, error):
    with pytest.raises(error) as caught:
        parse({"status": "REQUEST_NOT_PROCESSED", "message": [message], "Results": {}}, YEARS)

    assert "0123456789abcdef" not in caught.value.reason


@pytest.mark.parametrize(
    ("form", "error"), [("error200", SourceLimited), ("auth", SourceRefused), ("empty", SourceEmpty)]
)
def test_the_faults_of_the_twin_are_recognised(form, error):
    with pytest.raises(error):
        ask(TIMESERIES, YEARS, form=form)


def test_both_series_are_required():
    one = copy.deepcopy(BODY)
    del one["Results"]["series"][1]
    with pytest.raises(KeyError):
        parse(one, YEARS)


@pytest.mark.parametrize("value", ["0", "3274.6", "NaN", "abc", True])
def test_a_month_with_an_impossible_index_is_left_out(value):
    broken = copy.deepcopy(BODY)
    broken["Results"]["series"][0]["data"][0]["value"] = value
    with count_rows(0.1) as rows:
        assert parse(broken, YEARS).cpi == parse(BODY, YEARS).cpi[:-1]
    assert rows.dropped == 1


def test_the_twin_answers_the_worlds_figures_and_the_month_that_was_never_surveyed_is_absent():
    world, found = World(1, NOW), ask(TIMESERIES, YEARS)

    assert found.cpi[-1] == (date(2026, 12, 1), macro.cpi(world, date(2026, 12, 1)))
    assert len(found.cpi) == 35
    assert found.cpi_unadjusted[-1] == (date(2026, 12, 1), macro.cpi_unadjusted(world, date(2026, 12, 1)))
    assert date(2025, 10, 1) not in dict(found.cpi)
    assert all(value == macro.unemployment(world, day) for day, value in found.unemployment_percent)
    assert ask(TIMESERIES, YEARS, form="drift") == found


def test_a_key_that_starts_otherwise_is_refused_by_the_twin():
    assert ask(TIMESERIES, YEARS, keys={"BLS_API_KEY": "sim-1"}) == ask(TIMESERIES, YEARS)
    with pytest.raises(SourceRefused):
        ask(TIMESERIES, YEARS, keys={"BLS_API_KEY": "other"})
