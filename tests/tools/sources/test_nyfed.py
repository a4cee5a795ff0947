"""The New York Fed's effective federal funds rate."""

from datetime import date

import pytest

import tools.simulated.us_statistics  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated import macro
from tools.sources.nyfed import EFFR, parse
from toolserver.upstream.source import SourceChanged, SourceEmpty
from toolserver.world.model import World

BODY = {
    "refRates": [
        {
            "effectiveDate": "2024-10-30",
            "type": "EFFR",
            "percentRate": 4.83,
            "targetRateFrom": 4.75,
            "targetRateTo": 5.0,
        },
        {
            "effectiveDate": "2024-10-29",
            "type": "EFFR",
            "percentRate": "4.82",
            "targetRateFrom": 4.5,
            "targetRateTo": 4.75,
        },
        {"effectiveDate": "2024-10-31", "type": "OBFR", "percentRate": 4.99},
    ]
}


def test_only_the_effective_rate_is_read_oldest_first():
    found = parse(BODY, None)

    assert found.percent == ((date(2024, 10, 29), 4.82), (date(2024, 10, 30), 4.83))
    assert (found.target_from_percent, found.target_to_percent) == (4.75, 5.0)


def test_the_target_range_is_optional():
    found = parse({"refRates": [{"effectiveDate": "2024-10-30", "type": "EFFR", "percentRate": 4.83}]}, None)

    assert (found.target_from_percent, found.target_to_percent) == (None, None)


def test_no_rates_at_all_is_empty():
    with pytest.raises(SourceEmpty):
        parse({"refRates": []}, None)
    with pytest.raises(SourceEmpty):
        ask(EFFR, form="empty")


@pytest.mark.parametrize(
    "body",
    [{}, [], None, {"refRates": [{"type": "EFFR"}]}, {"refRates": [BODY["refRates"][0] | {"percentRate": "N/A"}]}],
)
def test_another_shape_is_not_read(body):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse(body, None)


def test_zeros_are_not_an_interest_rate():
    zeros = {"effectiveDate": "2024-10-30", "type": "EFFR", "percentRate": 0, "targetRateFrom": 0, "targetRateTo": 0}
    with pytest.raises(SourceChanged):
        parse({"refRates": [zeros]}, None)


def test_the_twin_answers_the_worlds_rate_within_the_worlds_target():
    world = World(1, NOW)
    found = ask(EFFR)

    assert len(found.percent) == 45
    assert all(value == macro.funds_rate(world, day) for day, value in found.percent)
    assert found.target_from_percent <= found.percent[-1].value <= found.target_to_percent
    assert ask(EFFR, form="drift") == found
