"""The broad dollar index in the Federal Reserve's H.10 release."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.federal_reserve  # noqa: F401 - serves
from tests.size import a_share
from tests.tools.desk import NOW, ask, fetch
from tools.simulated import macro
from tools.sources.federal_reserve import BROAD_DOLLAR_INDEX, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty
from toolserver.world.model import World

ROWS = (
    "<tr><th>Date</th><th>Index</th></tr><tr><th>31-DEC-26</th><td>121.5</td></tr><tr><th>1-JAN-27</th><td>ND</td></tr>"
)
PAGE = f"<html><body><table>{ROWS}</table></body></html>"
REQUEST = BROAD_DOLLAR_INDEX.request


def table(*rows):
    cells = "".join(f"<tr><th>{day}</th><td>{value}</td></tr>" for day, value in rows)
    return f"<html><table>{cells}</table></html>"


def test_dated_rows_are_values_and_nd_is_a_gap():
    assert parse(PAGE, None) == ((date(2026, 12, 31), 121.5),)


def test_years_of_two_and_four_digits_months_in_any_case():
    page = table(("3-Jan-2006", 101.4), ("4-JAN-06", 100.9), ("05-jan-06", "100.8"))
    assert [day for day, _ in parse(page, None)] == [date(2006, 1, n) for n in (3, 4, 5)]


def test_rows_of_other_tables_and_other_lengths_do_not_count():
    others = "<table><tr><td>Release</td><td>H.10</td></tr><tr><td>4-JAN-27</td><td>1</td><td>2</td></tr></table>"
    assert parse(others + PAGE, None) == parse(PAGE, None)


def test_a_page_is_asked_for_as_a_page_so_that_the_engine_lets_it_through():
    assert REQUEST.headers["Accept"] == "text/html"
    body = fetch(World(1, NOW), REQUEST).body
    assert len(parse_body(BROAD_DOLLAR_INDEX, REQUEST, None, body)) >= 250


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9])
def test_a_page_that_breaks_off_is_not_read(cut):
    body = fetch(World(1, NOW), REQUEST).body
    with pytest.raises((SourceChanged, SourceEmpty)):
        parse_body(BROAD_DOLLAR_INDEX, REQUEST, None, body[: int(len(body) * cut)])


@pytest.mark.parametrize("body", [b"<html><h1>Just a moment</h1></html>", b"", b"Date,Price", b"{}"])
def test_another_page_is_a_changed_source(body):
    with pytest.raises((SourceChanged, SourceEmpty)):
        parse_body(BROAD_DOLLAR_INDEX, REQUEST, None, body)


@pytest.mark.parametrize("row", [("4-JAN-27", "12.15"), ("4-JAN-27", "1215"), ("4-JAN-27", "x"), ("32-JAN-27", "121")])
def test_what_is_no_index_of_a_day_is_refused(row):
    with pytest.raises(ValueError):  # noqa: PT011 - each form has its own wording
        parse(table(row), None)


@given(
    st.dictionaries(
        st.dates(date(2006, 1, 1), date(2099, 12, 31)), st.floats(60, 200) | st.none(), min_size=1, max_size=30
    )
)
def test_parse_never_invents_or_drops_a_value(values):
    rows = [(f"{day.day}-{day:%b}-{day:%y}", "ND" if value is None else value) for day, value in values.items()]
    assert dict(parse(table(*rows), None)) == {day: value for day, value in values.items() if value is not None}


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_answers_the_worlds_index(form):
    found = ask(BROAD_DOLLAR_INDEX, form=form)

    world = World(1, NOW)
    assert found[-1].date == date(2027, 1, 8)  # out on Monday, 11 January
    assert all(value == macro.level(world, "dollar_index", day) for day, value in found)
    assert {date(2026, 12, 25), date(2027, 1, 1)}.isdisjoint(dict(found))


def test_headings_alone_are_no_answer():
    with pytest.raises(SourceEmpty):
        parse_body(BROAD_DOLLAR_INDEX, REQUEST, None, fetch(World(1, NOW), REQUEST, form="empty").body)


@pytest.mark.parametrize("days", a_share(range(0, 400, 7), 8))
def test_the_twin_is_never_older_than_the_source_allows(days):
    now = datetime(2026, 3, 2, 20, tzinfo=UTC) + timedelta(days=days)
    newest = BROAD_DOLLAR_INDEX.newest(ask(BROAD_DOLLAR_INDEX, world=World(1, now.timestamp())))

    assert timedelta(0) < now - newest <= timedelta(seconds=BROAD_DOLLAR_INDEX.newest_max_s)
