"""The parts of the agent context, made of what sources say."""

from datetime import UTC, date, datetime

import pytest

from tools.parsing.series import FxDay, series
from tools.parsing.spaceflight import Launch
from tools.shared.context_prompt import LINE
from tools.shared.context_shown import fed_rate, forex, infrastructure, launches, moment
from tools.shared.fx import FxRates
from tools.shared.status import MAJORS, ServiceItem
from tools.sources.nyfed import FundsRate

DAY = date(2027, 1, 14)
LAUNCH = Launch(
    "1", "Falcon 9 | Starlink", "SpaceX", None, None, None, "Go", None, None, "unknown", None, None, None, None, None
)


def services(**status):
    return [
        ServiceItem(name=p.name, status=status.get(p.name, "operational"), description="", url="u", checked_at=None)
        for p in MAJORS
    ]


@pytest.mark.parametrize(
    ("status", "summary", "fine"),
    [
        ({}, "All operational: GitHub, Cloudflare, OpenAI, Anthropic.", True),
        ({"OpenAI": "degraded"}, "OpenAI minor issues; operational: GitHub, Cloudflare, Anthropic.", False),
        (
            {"GitHub": "major_outage", "OpenAI": "unknown"},
            "GitHub critical; status of OpenAI unknown; operational: Cloudflare, Anthropic.",
            False,
        ),
        (
            {"GitHub": "partial_outage", "Cloudflare": "maintenance", "OpenAI": "degraded", "Anthropic": "degraded"},
            "GitHub major issues; Cloudflare maintenance; OpenAI minor issues; Anthropic minor issues.",
            False,
        ),
    ],
)
def test_the_summary_names_what_is_not_operational(status, summary, fine):
    found = infrastructure(services(**status))

    assert (found.summary, found.all_operational) == (summary, fine)
    assert len(found.summary) <= LINE


def test_of_services_that_nobody_could_ask_nothing_is_claimed():
    found = infrastructure(())
    assert set(found.details.model_dump().values()) == {"unknown"}
    assert found.all_operational is False


def test_a_moment_is_the_same_instant_in_every_form():
    found = moment(datetime(2027, 3, 7, 9, 5, tzinfo=UTC))

    assert (found.human_readable_utc, found.weekday) == ("Sunday, 7 March 2027, 09:05 UTC", "Sunday")
    assert found.unix_ms == 1_804_410_300_000


def test_rates_without_one_of_the_four_have_a_null_and_without_any_are_none():
    found = forex(FxRates((FxDay(DAY, {"EUR": 0.86956789, "GBP": 0.75}),), "ecb_reference"))

    assert (found.EUR, found.GBP, found.JPY, found.CHF) == (0.869568, 0.75, None, None)
    with pytest.raises(LookupError):
        forex(FxRates((FxDay(DAY, {"CAD": 1.39}),), "ecb_reference"))


def test_the_fed_rate_is_the_newest_with_its_range():
    found = fed_rate(FundsRate(series([(DAY, 3.83), (date(2027, 1, 13), 3.6)]), 3.75, 4.0))

    assert (found.value, found.as_of, found.target_from, found.target_to) == (3.83, DAY, 3.75, 4.0)


def test_a_launch_without_a_mission_goes_by_its_name():
    [shown] = launches([LAUNCH])
    assert (shown.mission, shown.vehicle, shown.net) == ("Falcon 9 | Starlink", None, None)
    assert len(launches([LAUNCH] * 7)) == 3
