"""Slow answers are expected again after the time that lay between the last two calls."""

import pytest

from tests.calls.toy import REGISTRY
from toolserver.calls.response_cache import AGAIN_S, LEAD_S, TRIES, CallRhythm, Expected

NUMBER = REGISTRY["number"]
TTL_S, HOUR = 300.0, 3600.0


@pytest.fixture
def rhythm():
    """Of one slow answer, called for at second 0."""
    rhythm = CallRhythm()
    rhythm.add("key", NUMBER, TTL_S, 0.0)
    return rhythm


def test_after_one_call_nothing_is_known(rhythm):
    assert [rhythm.next_expected(at) for at in (1.0, HOUR - 1, HOUR)] == [None, None, None]


def test_after_two_calls_the_third_is_expected_a_minute_before(rhythm):
    rhythm.note("key", HOUR)
    assert rhythm.next_expected(2 * HOUR - LEAD_S - 1) is None
    assert rhythm.next_expected(2 * HOUR - LEAD_S) == Expected("key", NUMBER, 2 * HOUR)


def test_a_call_is_expected_a_few_times_some_seconds_apart(rhythm):
    rhythm.note("key", HOUR)
    begun = 2 * HOUR - LEAD_S
    looks = [begun + 2 * look for look in range(31)]
    assert [at - begun for at in looks if rhythm.next_expected(at)] == [n * AGAIN_S for n in range(TRIES)]


def test_every_further_call_is_expected_too(rhythm):
    for call in (1, 2, 3):
        rhythm.note("key", call * HOUR)
        assert rhythm.next_expected((call + 1) * HOUR - 30) == Expected("key", NUMBER, (call + 1) * HOUR)


def test_a_call_that_did_not_come_is_not_expected_again(rhythm):
    rhythm.note("key", HOUR)
    assert rhythm.next_expected(2 * HOUR + 1) is None
    assert rhythm.next_expected(3 * HOUR - 1) is None


def test_calls_within_half_a_lifetime_are_one(rhythm):
    for at in (50.0, HOUR, HOUR + 50):
        rhythm.note("key", at)
    assert rhythm.next_expected(2 * HOUR - 10) == Expected("key", NUMBER, HOUR + 50 + HOUR - 50)


def test_an_answer_that_lives_shortly_is_composed_half_a_lifetime_before():
    rhythm = CallRhythm()
    rhythm.add("key", NUMBER, 30.0, 0.0)
    rhythm.note("key", HOUR)
    assert rhythm.next_expected(2 * HOUR - 16) is None
    assert rhythm.next_expected(2 * HOUR - 15) is not None


def test_answers_that_are_not_slow_or_are_never_kept_are_not_expected():
    rhythm = CallRhythm()
    rhythm.add("never kept", NUMBER, 0.0, 0.0)
    for at in (0.0, HOUR):
        rhythm.note("quick", at)
        rhythm.note("never kept", at)
    assert rhythm.next_expected(2 * HOUR - 1) is None


def test_an_answer_found_slow_again_keeps_its_pace(rhythm):
    rhythm.note("key", HOUR)
    rhythm.add("key", NUMBER, TTL_S, HOUR)
    assert rhythm.next_expected(2 * HOUR - 1) is not None


def test_a_rhythm_is_known_from_the_first_second_of_the_epoch_on():
    rhythm = CallRhythm()
    rhythm.add("key", NUMBER, 8.0, 0.0)
    rhythm.note("key", 8.0)
    assert rhythm.next_expected(12.0) == Expected("key", NUMBER, 16.0)
    assert rhythm.next_expected(15.9) is None
    rhythm.note("key", 20.0)
    assert rhythm.next_expected(32.0) == Expected("key", NUMBER, 32.0)


def test_a_call_after_exactly_half_a_lifetime_is_still_the_same_one(rhythm):
    rhythm.note("key", TTL_S / 2)
    assert rhythm.next_expected(TTL_S) is None
    rhythm.note("key", TTL_S + 1)
    assert rhythm.next_expected(TTL_S + 1) is None
    assert rhythm.next_expected(1.5 * TTL_S + 2 - LEAD_S) == Expected("key", NUMBER, 1.5 * TTL_S + 2)


def test_the_lead_is_a_minute_and_a_partial_answer_has_four_tries_twelve_seconds_apart():
    assert (LEAD_S, AGAIN_S, TRIES) == (60, 12, 4)
