"""The circuit of each source, and the two lines it leaves in the log."""

import pytest
from msgspec import msgpack

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.source import (
    HostRefused,
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceFrozen,
    SourceImplausible,
    SourceLimited,
)
from toolserver.upstream.source_health import POLICY, POLICY_FOR_CALLERS, CircuitOpen, SourceHealth, SourceHistory

DOWN = SourceDown("no route")
NOT_A_FAILURE = {
    "the upstream's limit": SourceLimited("http 429"),
    "our budget": RequestWithheld(),
    "a circuit that is open": CircuitOpen(),
    "an implausible value": SourceImplausible("jumped"),
    "a host that refuses us": HostRefused("http 403"),
}


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def health(clock):
    return SourceHealth(clock)


def fail(health, times, error=DOWN):
    for _ in range(times):
        health.admit("A")
        health.record_failure("A", error)


def is_open(health, name="A"):
    try:
        health.admit(name)
    except SourceDown as refusal:
        return refusal.word == "breaker_open"
    return False


async def test_three_failures_in_a_row_open_the_circuit_of_that_source_only(health):
    fail(health, 2)
    health.record_success("A")
    fail(health, 2)
    assert not is_open(health)
    fail(health, 1)
    assert (is_open(health, "A"), is_open(health, "B")) == (True, False)


async def test_each_failed_probe_doubles_the_wait_from_30_s_to_10_minutes(health, clock):
    fail(health, 3)
    for wait_s in (30, 60, 120, 240, 480, 600, 600):
        clock.advance(wait_s - 1)
        assert is_open(health)
        clock.advance(1)
        fail(health, 1)


async def test_one_request_probes_and_its_success_closes_the_circuit(health, clock):
    fail(health, 3)
    clock.advance(30)
    health.admit("A")
    assert is_open(health)
    health.record_success("A")
    assert (is_open(health), is_open(health)) == (False, False)


@pytest.mark.parametrize("error", NOT_A_FAILURE.values(), ids=NOT_A_FAILURE)
async def test_what_says_nothing_about_the_source_opens_no_circuit_and_lets_another_probe_go(health, clock, error):
    fail(health, 10, error)
    assert not is_open(health)
    fail(health, 3)
    clock.advance(30)
    health.admit("A")
    health.record_failure("A", error)
    assert not is_open(health)


async def test_a_probe_that_is_cancelled_lets_another_one_go(health, clock):
    fail(health, 3)
    clock.advance(30)
    health.admit("A")
    health.record_nothing("A")
    assert not is_open(health)


async def test_the_log_has_one_line_when_a_source_goes_down_and_one_when_it_is_back(health, clock, caplog):
    fail(health, 3)
    clock.advance(30)
    fail(health, 1)
    clock.advance(60)
    health.admit("A")
    health.record_success("A")
    health.record_success("A")
    lines = [(record.message, record.source, getattr(record, "reason", None)) for record in caplog.records]
    assert lines == [("source is down", "A", "connect: no route"), ("source is back", "A", None)]


@pytest.mark.parametrize("error", [SourceChanged(word="http_404"), SourceChanged(word="http_400"), SourceEmpty("none")])
def test_a_refused_query_of_a_caller_says_nothing_about_the_source(clock, error):
    health = SourceHealth(clock, is_for_callers=True)
    fail(health, 100, error)
    assert not is_open(health)


def test_refusals_of_callers_queries_open_their_circuit_for_their_hosts_are_not_closed(clock):
    health = SourceHealth(clock, is_for_callers=True)
    fail(health, 10, HostRefused("http 403"))
    assert is_open(health)


def test_failures_of_callers_queries_open_a_circuit_only_after_ten(clock):
    health = SourceHealth(clock, is_for_callers=True)
    fail(health, 9)
    assert not is_open(health)
    fail(health, 1)
    assert is_open(health)


def counted(history):
    return [(row.good, row.old, row.failed, row.last) for row in history.quarters("A")]


def test_every_exchange_that_says_something_of_the_source_is_counted_in_its_history(clock):
    history = SourceHistory(clock)
    health = SourceHealth(clock, history=history)
    health.record_success("A")
    for error in (SourceFrozen("of 2020"), SourceLimited("http 429"), SourceImplausible("jumped"), DOWN):
        health.record_failure("A", error)
    assert counted(history) == [(1, 1, 3, "connect")]


@pytest.mark.parametrize("error", [RequestWithheld(), CircuitOpen(), HostRefused("lately", was_sent=False)])
def test_what_was_not_asked_is_not_counted(clock, error):
    history = SourceHistory(clock)
    SourceHealth(clock, history=history).record_failure("A", error)
    assert counted(history) == []


def test_a_query_of_a_caller_that_the_source_refuses_is_not_counted_against_it(clock):
    history = SourceHistory(clock)
    health = SourceHealth(clock, is_for_callers=True, history=history)
    health.record_failure("A", SourceEmpty("none"))
    health.record_failure("A", SourceChanged(word="http_404"))
    assert counted(history) == []
    fail(health, 10)
    assert counted(history) == [(0, 0, 10, "connect")]
    assert history.changes() == []


def test_the_history_says_when_the_circuit_opened_and_when_it_closed_again(clock):
    history = SourceHistory(clock)
    health = SourceHealth(clock, history=history)
    assert health.state("A") == "closed"
    fail(health, 3)
    assert health.state("A") == "open"
    clock.advance(30)
    fail(health, 1)
    clock.advance(60)
    health.admit("A")
    assert health.state("A") == "half_open"
    health.record_success("A")
    assert health.state("A") == "closed"
    assert [(change.kind, change.reason) for change in history.changes()] == [("back", "ok"), ("down", "connect")]


def test_the_sources_that_are_not_asked_are_listed_with_the_seconds_left(clock):
    health = SourceHealth(clock)
    fail(health, 2)
    assert health.list_open() == []
    fail(health, 1)
    clock.advance(10)
    assert [seconds for _, seconds in health.list_open()] == [pytest.approx(20)]


class AllInstances:
    """What all instances know together, as a test arranges it, and the results that they are told."""

    def __init__(self):
        self.state, self.wait_s, self.told = b"closed", 0, []

    async def run(self, script, keys, given):
        return self.state, self.wait_s * 1e6

    def send(self, script, keys, given):
        self.told.append(msgpack.decode(given[0])["result"])


@pytest.fixture
def others():
    return AllInstances()


@pytest.fixture
def shared(clock, others):
    return SourceHealth(clock, memory=others)


async def test_a_source_that_all_instances_get_answers_from_is_asked_and_takes_no_memory(shared):
    await shared.admit_among_all("A")
    assert shared._circuits == {}


async def test_what_all_instances_know_of_a_source_is_its_state_here(shared, others, clock):
    others.state, others.wait_s = b"open", 12
    with pytest.raises(CircuitOpen, match="probe in 12 s"):
        await shared.admit_among_all("A")
    assert (shared.state("A"), shared.list_open()) == ("open", [("A", 12)])
    others.state, others.wait_s = b"half_open", 0
    await shared.admit_among_all("A")
    assert shared.state("A") == "half_open"
    others.state = b"closed"
    await shared.admit_among_all("A")
    assert (shared.state("A"), shared.list_open()) == ("closed", [])


async def test_all_instances_are_told_what_came_of_a_request(shared, others):
    shared.record_success("A")
    shared.record_failure("A", DOWN)
    shared.record_failure("A", SourceLimited("http 429"))
    assert others.told == ["good", "bad"]
    others.state = b"half_open"
    await shared.admit_among_all("A")
    shared.record_nothing("A")
    assert others.told == ["good", "bad", "nothing"]


def test_a_source_is_down_for_half_a_minute_at_first_and_for_callers_two_minutes_at_most():
    assert (POLICY.failures_in_a_row, POLICY.first_wait_s, POLICY.longest_wait_s) == (3, 30, 600)
    callers = POLICY_FOR_CALLERS
    assert (callers.failures_in_a_row, callers.first_wait_s, callers.longest_wait_s) == (10, 30, 120)
