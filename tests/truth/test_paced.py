"""On a healthy world our own pacing takes nothing from an answer, and no host gets more than it allows."""

from collections import Counter

import pytest

from tests.calls.parts import FREELY
from tests.tools.paces import Sent
from tests.truth.paced import TRAFFIC, Paced, run_paced
from toolserver.upstream.host_lane import HostLane
from toolserver.upstream.source import HostGroup

MINUTE = 60 / 86400  # of a day


@pytest.mark.timeout(300)
def test_all_tools_at_once_from_a_cold_start_get_whole_answers_within_the_budgets():
    found = run_paced("busy", MINUTE / 2)
    assert found.answers >= 80
    assert found.requests >= 100
    assert found.faults == {}


@pytest.mark.slow("traffic of some minutes: every tool, again and again")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_traffic_of_minutes_loses_nothing_to_our_own_pacing(traffic):
    found = run_paced(traffic, 20 * MINUTE if traffic == "normal" else 5 * MINUTE)
    assert found.answers >= 80
    assert found.faults == {}


@pytest.mark.slow("all tools once")
@pytest.mark.timeout(300)
def test_paces_without_bursts_are_seen(monkeypatch):
    make = HostLane.__init__
    monkeypatch.setattr(HostLane, "__init__", lambda lane, *given: make(lane, *given[:-1], 1))
    told = run_paced("busy", MINUTE / 60)
    assert told.late["humans_in_space"] > 0
    assert any("Reddit" in name for name in told.withheld)


@pytest.mark.parametrize(("times", "most"), [([], 0), ([0, 10, 59.9], 3), ([0, 10, 60], 2), ([0, 60, 61, 119, 120], 3)])
def test_the_fullest_period_is_found_wherever_it_begins(times, most):
    assert Sent(FREELY, (), times).most_in_a_period == most


@pytest.mark.parametrize(("times", "ahead_s"), [([], 0), ([5], 2), ([5, 5, 5], 6), ([5, 7, 9], 2), ([5, 5, 9, 9], 4)])
def test_a_burst_is_measured_by_how_far_it_is_ahead_of_the_distance(times, ahead_s):
    assert Sent(HostGroup("g", 1, 2, 100, 60), (), times).most_ahead_s == ahead_s


def test_what_went_wrong_is_counted_and_named():
    found = Paced("busy", 1, answers=7, late=Counter(gas=2, stocks=0), exceeded=Counter({"budget of g (a)": 1}))
    assert found.faults == {"late: gas": 2, "exceeded: budget of g (a)": 1}
    assert str(found).splitlines()[1:] == ["  2 x late: gas", "  1 x exceeded: budget of g (a)"]
