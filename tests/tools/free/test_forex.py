"""The forex tool: published days, their order of preference, and what is missing."""

from datetime import UTC, date, datetime

import pytest

import tools.simulated.currency_api
import tools.simulated.ecb
import tools.simulated.frankfurter  # noqa: F401 - serves
from tests.tools.desk import NOW
from tools.free.forex import forex
from tools.parsing.series import CODES
from tools.shared.fx import weekday_before
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

FRANKFURTER, ECB, MID = "Frankfurter.usd_timeseries", "ECB.reference_rates_90d", "CurrencyApi.usd_rates"


def at(*instant):
    return World(1, datetime(*instant, tzinfo=UTC).timestamp())


async def test_rates_are_those_of_the_world_and_changes_follow_from_them(compose):
    made = await compose(forex)

    expected = ROUTES.expectations["forex"](World(1, NOW), {})
    assert {key: made.json[key] for key in expected} == expected
    assert list(made.json["rates"]) == list(CODES)
    for code, change in made.json["change_percent"].items():
        old, new = made.json["previous"]["rates"][code], made.json["rates"][code]
        assert change == pytest.approx((new - old) / old * 100, abs=0.0051)
    assert made.notes.warnings == []


async def test_on_a_weekend_both_days_are_the_last_published_ones(compose):
    made = await compose(forex, world=at(2027, 1, 17, 12))  # a Sunday

    assert made.json["date"] == "2027-01-15"
    assert made.json["previous"]["date"] == "2027-01-14"


async def test_on_a_monday_morning_the_previous_day_is_no_calendar_yesterday(compose):
    made = await compose(forex, world=at(2027, 1, 18, 16))  # Monday, after the fixing

    assert made.json["date"] == "2027-01-18"
    assert made.json["previous"]["date"] == "2027-01-15"


async def test_a_holiday_is_skipped(compose):
    made = await compose(forex, world=at(2026, 12, 28, 16))  # the 25th was a Friday

    assert made.json["date"] == "2026-12-28"
    assert made.json["previous"]["date"] == "2026-12-24"


async def test_the_ecb_itself_answers_the_same_when_frankfurter_is_down(compose):
    usual = await compose(forex)
    made = await compose(forex, down={FRANKFURTER})

    assert made.json["date"] == usual.json["date"]
    assert made.json["rates"] == pytest.approx(usual.json["rates"], rel=1e-4)
    assert made.json["kind"] == "ecb_reference"
    assert [(n.source.name, n.status) for n in made.notes.sources] == [(ECB, "fallback"), (FRANKFURTER, "error")]
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_mid_market_rates_say_that_they_are_no_fixings(compose):
    made = await compose(forex, world=at(2027, 1, 17, 12), down={FRANKFURTER, ECB})

    assert made.json["kind"] == "market_mid"
    assert made.json["date"] == "2027-01-17"
    assert made.json["previous"]["date"] == "2027-01-15"
    assert [query for name, query in made.desk.asked if name == MID] == [None, date(2027, 1, 15)]


async def test_a_currency_that_is_not_quoted_is_left_out_and_named(compose):
    made = await compose(forex, forms={FRANKFURTER: "drift"})

    assert "NOK" not in made.json["rates"]
    assert "NOK" not in made.json["change_percent"]
    assert [(w.code, w.section) for w in made.notes.warnings] == [("field_missing", "data.rates")]
    assert "NOK" in made.notes.warnings[0].message


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(forex, down={"*"})


@pytest.mark.parametrize(
    ("day", "before"),
    [
        ((2027, 1, 16), (2027, 1, 15)),
        ((2027, 1, 17), (2027, 1, 15)),
        ((2027, 1, 18), (2027, 1, 15)),
        ((2027, 1, 20), (2027, 1, 19)),
    ],
)
def test_the_weekday_before_a_day(day, before):
    assert weekday_before(date(*day)) == date(*before)
