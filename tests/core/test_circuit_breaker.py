"""The one circuit breaker: when it opens, how long it waits, what closes it."""

from datetime import UTC, datetime

import pytest

from toolserver.clock import ManualClock
from toolserver.core.circuit_breaker import BreakerPolicy, CircuitBreaker

ONE_PROBE = BreakerPolicy(failures_in_a_row=3, first_wait_s=30, longest_wait_s=600, probes=1, spread=0, window=None)


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 15, 8, tzinfo=UTC))


def breaker_of(clock, policy=None, *, chance=0.5):
    return CircuitBreaker(clock, policy, chance=lambda: chance)


def record(breaker, *results):
    for good in results:
        breaker.record(good=good)


async def test_five_failures_in_a_row_open_it(clock):
    breaker = breaker_of(clock)
    for good in (False, False, False, False, True, False, False, False, False):
        breaker.record(good=good)
        assert breaker.closed
    breaker.record(good=False)
    assert (breaker.state, breaker.wait_s, breaker.tripped.is_set(), breaker.opened) == ("open", 30, True, 1)


async def test_a_result_that_arrives_after_it_has_opened_changes_nothing(clock):
    breaker = breaker_of(clock)
    record(breaker, *[False] * 5)
    clock.advance(10)
    record(breaker, True, *[False] * 5)
    assert (breaker.state, breaker.wait_s, breaker.opened) == ("open", 20, 1)


async def test_half_of_twenty_results_within_half_a_minute_open_it(clock):
    breaker = breaker_of(clock)
    record(breaker, *[number % 2 == 0 for number in range(18)])
    clock.advance(31)
    record(breaker, *[number % 2 == 0 for number in range(19)])
    assert breaker.closed
    breaker.record(good=False)
    assert breaker.state == "open"


async def test_a_policy_without_a_window_counts_failures_in_a_row_only(clock):
    breaker = breaker_of(clock, ONE_PROBE)
    record(breaker, *[False, False, True] * 20)
    assert breaker.closed


async def test_two_probes_close_it_and_a_failed_one_doubles_the_wait(clock):
    breaker = breaker_of(clock)
    record(breaker, *[False] * 5)
    waits = []
    for _ in range(5):
        waits.append(breaker.wait_s)
        clock.advance(breaker.wait_s)
        assert breaker.start_probe()
        breaker.record_probe(good=True)
        assert breaker.state == "half_open"
        assert breaker.start_probe()
        breaker.record_probe(good=False)
    assert waits == [30, 60, 120, 240, 300]


async def test_after_it_has_closed_it_starts_with_the_shortest_wait_again(clock):
    breaker = breaker_of(clock, ONE_PROBE)
    record(breaker, *[False] * 3)
    for _ in range(2):
        clock.advance(breaker.wait_s)
        assert breaker.start_probe()
        breaker.record_probe(good=False)
    clock.advance(breaker.wait_s)
    assert breaker.start_probe()
    breaker.record_probe(good=True)
    assert (breaker.closed, breaker.tripped.is_set(), breaker.opened) == (True, False, 1)
    record(breaker, False, False)
    assert breaker.closed
    breaker.record(good=False)
    assert (breaker.wait_s, breaker.opened) == (30, 2)


async def test_one_probe_at_a_time_and_none_before_the_wait_is_over(clock):
    breaker = breaker_of(clock, ONE_PROBE)
    assert not breaker.start_probe()
    record(breaker, *[False] * 3)
    clock.advance(29)
    assert not breaker.start_probe()
    clock.advance(1)
    assert [breaker.start_probe(), breaker.start_probe()] == [True, False]
    breaker.abandon_probe()
    assert breaker.start_probe()


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 24), (1.0, 36)])
async def test_the_wait_varies_so_that_instances_do_not_probe_at_the_same_moment(clock, chance, wait):
    breaker = breaker_of(clock, chance=chance)
    record(breaker, *[False] * 5)
    assert breaker.wait_s == pytest.approx(wait)


def test_it_takes_over_how_the_circuit_stands_elsewhere(clock):
    circuit = CircuitBreaker(clock)
    circuit.adopt("open", 20)
    assert (circuit.state, circuit.wait_s, circuit.opened, circuit.tripped.is_set()) == ("open", 20, 1, True)
    circuit.adopt("half_open", 0)
    assert not circuit.start_probe(), "the probe is under way"
    circuit.adopt("closed", 0)
    assert (circuit.state, circuit.opened, circuit.tripped.is_set()) == ("closed", 1, False)
    circuit.record(good=False)
    circuit.adopt("closed", 0)
    for _ in range(4):
        circuit.record(good=False)
    assert circuit.state == "open", "what it counted itself stands"
