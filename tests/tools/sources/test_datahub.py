"""DataHub's daily prices of oil and gas."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.datahub  # noqa: F401 - serves
from tests.size import a_share
from tests.tools.desk import NOW, ask
from tools.simulated import macro
from tools.sources.datahub import HENRY_HUB_DAILY, RECENT, WTI_DAILY, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import Get, SourceChanged, SourceDown
from toolserver.world.model import World

FILE = "Date,Price\n2020-04-17,18.31\n2020-04-20,-36.98\n2020-04-21,8.91\n"
BOTH = pytest.mark.parametrize(("source", "name"), [(WTI_DAILY, "oil"), (HENRY_HUB_DAILY, "nat_gas")])


def test_a_price_below_zero_is_one():
    assert dict(parse(FILE, -50, 500)) == {date(2020, 4, 17): 18.31, date(2020, 4, 20): -36.98, date(2020, 4, 21): 8.91}


def test_a_day_without_a_price_is_a_gap():
    assert len(parse(FILE + "2020-04-22,\n", -50, 500)) == 3


@BOTH
def test_the_files_are_those_of_the_main_branch(source, name):
    url = source.plan(None, {}).url

    assert url.startswith("https://raw.githubusercontent.com/datasets/")
    assert "/main/data/" in url
    assert url.endswith("daily.csv")


@pytest.mark.parametrize(
    "body", ["", FILE[:-2], "<html>\n</html>\n", "Date,Value\n2020-04-17,18\n", "404: Not Found", FILE + "2020-04-22\n"]
)
def test_a_body_that_is_not_the_table_is_a_changed_source(body):
    with pytest.raises(SourceChanged):
        parse(body, -50, 500)


@pytest.mark.parametrize("line", ["2020-04-22,x", "2020-04-22,900", "22.4.2020,18", ",18", "2020-04-22,nan"])
def test_what_is_no_price_of_a_day_is_left_out(line):
    assert parse(FILE + line + "\n", -50, 500) == parse(FILE, -50, 500)


def test_a_file_of_zeros_is_no_market():
    with pytest.raises(SourceChanged):
        parse("Date,Price\n2027-01-04,0\n2027-01-05,0.00\n", -50, 500)


@BOTH
@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_answers_the_worlds_prices(source, name, form):
    found = ask(source, form=form)

    world = World(1, NOW)
    assert found[-1].date == date(2027, 1, 8)  # that week was copied on the 14th
    assert all(value == macro.level(world, name, day) for day, value in found)
    assert len(found) == RECENT
    assert date(2026, 12, 25) not in dict(found)


@BOTH
def test_an_empty_file_and_a_missing_one_are_no_answers(source, name):
    assert ask(source, form="empty") == ()  # the engine asks for one observation at least
    with pytest.raises(SourceDown):
        ask(source, form="status:404")


@given(st.dictionaries(st.dates(), st.floats(0.01, 500) | st.none(), min_size=1, max_size=40))
def test_parse_never_invents_or_drops_a_price(values):
    lines = [f"{day},{'' if value is None else value}" for day, value in values.items()]
    found = parse("\n".join(["Date,Price", *lines]) + "\n", -50, 500)
    assert dict(found) == {day: value for day, value in values.items() if value is not None}


@pytest.mark.parametrize("days", a_share(range(0, 400, 7), 8))
@BOTH
def test_the_twin_is_never_older_than_the_source_allows(source, name, days):
    now = datetime(2026, 3, 1, 5, tzinfo=UTC) + timedelta(days=days)
    newest = source.newest(ask(source, world=World(1, now.timestamp())))

    assert timedelta(0) < now - newest <= timedelta(seconds=source.newest_max_s)


def test_a_page_instead_of_the_file_is_refused_by_the_engine():
    with pytest.raises(SourceChanged):
        parse_body(WTI_DAILY, Get("https://x", decode="text"), None, b"<!DOCTYPE html><html></html>")
