"""Only a clock that is not the machine's says how far ahead it is."""

from tests.calls.parts import START
from toolserver.clock import ManualClock, SystemClock
from toolserver.upstream.shared_clock import SharedClock


def test_a_real_clock_adds_nothing_and_a_simulated_one_how_far_ahead_it_is():
    assert SharedClock(SystemClock()).date({"a": 1}) == {"a": 1}
    clock = ManualClock(START)
    dated = SharedClock(clock)
    before = dated.date({"a": 1})["ahead"]
    clock.advance(600)
    assert 599 < dated.date({})["ahead"] - before <= 600
