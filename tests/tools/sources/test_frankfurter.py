"""Frankfurter: fixings with the dollar as base."""

import json
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.frankfurter  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.parsing.series import CODES, choose_rates
from tools.simulated import macro
from tools.sources.frankfurter import USD_TIMESERIES, FxWindow, parse, request
from toolserver.upstream.source import SourceDown, SourceEmpty
from toolserver.world.model import World

WINDOW = FxWindow(date(2026, 11, 26), date(2027, 1, 15))


def body(days=25, codes=CODES, rate=1.5):
    rates = {str(date(2026, 1, 1) + timedelta(days=n)): dict.fromkeys(codes, rate) for n in range(days)}
    return {"amount": 1.0, "base": "USD", "start_date": "2026-01-01", "end_date": "2026-02-01", "rates": rates}


def test_the_window_is_in_the_path_and_no_part_of_the_cache_key():
    asked = request(WINDOW, {})

    assert asked.url == "https://api.frankfurter.dev/v1/2026-11-26..2027-01-15"
    assert asked.params["base"] == "USD"
    assert asked.params["symbols"].split(",") == list(CODES)
    assert USD_TIMESERIES.key(WINDOW) == USD_TIMESERIES.key(FxWindow(date(2026, 1, 1), date(2026, 3, 1)))


def test_a_recorded_range_holds_too_few_days_to_be_believed(sample):
    with pytest.raises(SourceEmpty):
        parse(json.loads(sample("frankfurter/range-USD-CAD-2024-01.json")), WINDOW)


def test_recorded_rates_are_read_by_code(sample):
    recorded = json.loads(sample("frankfurter/latest-USD.json"))["rates"]

    assert choose_rates(recorded) == {"EUR": 0.89469, "CAD": 1.4253, "SGD": 1.2804}


def test_another_base_is_not_read(sample):
    with pytest.raises(ValueError, match="base"):
        parse(json.loads(sample("frankfurter/latest-GBP.json")), WINDOW)


def test_a_newest_day_with_few_currencies_is_not_enough():
    with pytest.raises(SourceEmpty):
        parse(body(codes=CODES[:11]), WINDOW)
    with pytest.raises(SourceEmpty):
        parse(body(rate=None), WINDOW)
    assert len(parse(body(codes=CODES[:12]), WINDOW)) == 25


@pytest.mark.parametrize("broken", [{}, [], {"message": "not found"}, body(rate=0), body(rate=-1), body(rate="x")])
def test_another_shape_is_not_read(broken):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse(broken, WINDOW)


@given(st.lists(st.dates(), min_size=20, max_size=40, unique=True), st.floats(1e-3, 1e5))
def test_parse_never_invents_or_drops_a_day(dates, rate):
    found = parse({"base": "USD", "rates": {str(d): dict.fromkeys(CODES, rate) for d in dates}}, WINDOW)

    assert [day.date for day in found] == sorted(dates)
    assert all(day.per_usd == dict.fromkeys(CODES, rate) for day in found)


def test_the_twin_publishes_no_weekends_and_no_holidays():
    days = ask(USD_TIMESERIES, WINDOW)

    assert days[-1].date == date(2027, 1, 14)
    assert len(days) >= 30
    published = {day.date for day in days}
    assert not published & {date(2026, 12, 25), date(2027, 1, 1), date(2027, 1, 9), date(2027, 1, 10)}


def test_the_twin_starts_with_the_business_day_before_the_window():
    assert ask(USD_TIMESERIES, FxWindow(date(2026, 11, 28), WINDOW.until))[0].date == date(2026, 11, 27)


def test_the_twins_rates_are_the_worlds_with_five_digits():
    newest = ask(USD_TIMESERIES, WINDOW)[-1]

    for code in CODES:
        assert newest.per_usd[code] == float(f"{macro.per_usd(World(1, NOW), code, newest.date):.5g}")


def test_the_drifted_form_is_read_without_the_currency_it_lost():
    drifted, usual = ask(USD_TIMESERIES, WINDOW, form="drift"), ask(USD_TIMESERIES, WINDOW)

    assert [day.date for day in drifted] == [day.date for day in usual]
    assert set(drifted[-1].per_usd) == set(CODES) - {"NOK"}


@pytest.mark.parametrize(("form", "error"), [("empty", SourceEmpty), ("status:404", SourceDown)])
def test_the_faults_of_the_twin_are_recognised(form, error):
    with pytest.raises(error):
        ask(USD_TIMESERIES, WINDOW, form=form)
