"""Only a clock that is not the machine's says how far ahead it is."""

import pytest

from tests.calls.parts import START
from toolserver.clock import ClockSkew, ManualClock, SteeredClock, SystemClock
from toolserver.upstream.shared_clock import SharedClock


def test_a_real_clock_adds_nothing_and_a_simulated_one_how_far_ahead_it_is():
    assert SharedClock(SystemClock()).date({"a": 1}) == {"a": 1}
    clock = ManualClock(START)
    dated = SharedClock(clock)
    before = dated.date({"a": 1})["ahead"]
    clock.advance(600)
    assert 599 < dated.date({})["ahead"] - before <= 600


@pytest.mark.parametrize(
    ("ahead_s", "added"),
    [(0.5, {}), (-0.5, {}), (1.0, {"ahead": 1.0}), (-1.0, {"ahead": -1.0}), (600.0, {"ahead": 600.0})],
)
def test_a_lead_of_a_second_is_the_least_that_is_said(ahead_s, added):
    clock, machine, asked = ManualClock(START), ManualClock(START), {"a": 1}
    dated = SharedClock(clock, machine)
    (clock if ahead_s > 0 else machine).advance(abs(ahead_s))
    assert dated.date(asked) == {"a": 1} | added
    assert asked == {"a": 1}


@pytest.mark.parametrize("off_s", [-30.0, 30.0])
def test_a_machine_whose_clock_is_off_moves_nobody_elses_time(off_s):
    skew = ClockSkew()
    skew.seconds = off_s
    steered = SteeredClock(SystemClock(), skew)
    assert abs(steered.time() - SystemClock().time()) > 1
    assert SharedClock(steered).date({"a": 1}) == {"a": 1}
