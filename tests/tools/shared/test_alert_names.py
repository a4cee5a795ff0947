"""Names of weather events: found in any case, new ones in the data too; unknown ones are refused with the nearest."""

import pytest

from tools.shared.alerts import EVENTS, find_event, spell_event
from tools.simulated.alerts import HAZARDS, TEST
from toolserver.errors import InvalidArguments


def test_the_list_has_what_the_simulated_service_says_and_nothing_twice_but_for_its_case():
    assert {hazard.event for hazard in (*HAZARDS, TEST)} <= EVENTS
    assert len({name.casefold() for name in EVENTS}) == len(EVENTS) > 120


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("tornado warning", "Tornado Warning"),
        ("EVACUATION -  immediate", "Evacuation - Immediate"),
        ("Rain of Frogs", "Rain of Frogs"),
    ],
)
def test_a_known_name_is_spelled_as_the_service_does(given, name):
    assert spell_event(given) == name


def test_a_name_that_only_the_data_has_is_known():
    assert find_event("rain OF frogs", ["Rain of Frogs"]) == "Rain of Frogs"
    assert find_event("tornado warning", []) == "Tornado Warning"


@pytest.mark.parametrize(
    ("given", "nearest"), [("tornado", "Tornado Watch"), ("flash flod warning", "Flash Flood Warning"), ("x", None)]
)
def test_an_unknown_name_is_refused_with_the_nearest(given, nearest):
    with pytest.raises(InvalidArguments) as refused:
        find_event(given, ["Rain of Frogs"])
    assert len(refused.value.extra["did_you_mean"]) == 3
    assert nearest in (None, *refused.value.extra["did_you_mean"])
