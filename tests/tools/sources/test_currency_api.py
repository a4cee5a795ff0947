"""Currency-api: mid-market rates of a calendar day."""

from datetime import UTC, date, datetime

import pytest

import tools.simulated.currency_api  # noqa: F401 - serves
from tests.tools.desk import ask
from tools.parsing.series import CODES
from tools.simulated import macro
from tools.sources.currency_api import USD_RATES, judged, parse, request
from toolserver.upstream.source import SourceDown, SourceEmpty
from toolserver.world.model import World


def body(day="2027-01-16", codes=CODES, rate=1.5):
    return {"date": day, "usd": {code.lower(): rate for code in codes} | {"btc": 0.00001}}


def test_the_youngest_file_or_that_of_a_day_is_asked_for():
    assert "currency-api@latest/v1/" in request(None, {}).url
    assert "currency-api@2027-01-15/v1/" in request(date(2027, 1, 15), {}).url


def test_our_currencies_are_read_by_lower_case_code():
    found = parse(body(), None)

    assert found.day.date == date(2027, 1, 16)
    assert set(found.day.per_usd) == set(CODES)


def test_only_the_youngest_file_is_judged_by_its_age():
    assert judged(parse(body(), None)) == datetime(2027, 1, 16, tzinfo=UTC)
    assert judged(parse(body(), date(2027, 1, 16))) is None


def test_the_file_of_another_day_than_asked_is_not_taken():
    with pytest.raises(ValueError, match="instead of"):
        parse(body(), date(2027, 1, 15))


def test_few_currencies_are_not_enough():
    with pytest.raises(SourceEmpty):
        parse(body(codes=CODES[:11]), None)
    with pytest.raises(SourceEmpty):
        ask(USD_RATES, form="empty")


@pytest.mark.parametrize("broken", [{}, [], {"date": "2027-01-16"}, body(rate=0), body(rate="x"), body(day="today")])
def test_another_shape_is_not_read(broken):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse(broken, None)


def test_the_twin_has_weekends_and_stays_near_the_fixing():
    saturday = datetime(2027, 1, 16, 12, tzinfo=UTC).timestamp()
    found = ask(USD_RATES, world=World(1, saturday))

    assert found.day.date == date(2027, 1, 16)
    for code, rate in found.day.per_usd.items():
        assert rate == pytest.approx(macro.per_usd(World(1, saturday), code, date(2027, 1, 16)), rel=0.002)


def test_the_twin_has_no_files_of_the_future():
    with pytest.raises(SourceDown):
        ask(USD_RATES, date(2028, 1, 1))
