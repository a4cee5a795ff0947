import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import proves
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.webhooks.records import (
    FAR_FAILING_MS,
    FAR_MS,
    SLOT_MS,
    THINNEST,
    Attempt,
    after_failure,
    after_success,
    is_misplaced,
    next_slot,
    retry_delay,
    slots_apart,
    untell,
)

times = st.integers(0, 2**42)


@given(times, times)
def test_the_next_slot_lies_ahead_by_five_minutes_at_most_and_keeps_the_phase_of_the_creation(created, now):
    due = next_slot(created, now)
    assert (due - created) % SLOT_MS == 0
    assert now < due <= now + SLOT_MS


def test_a_subscription_fires_five_minutes_after_its_creation_and_then_every_five_minutes():
    assert next_slot(1_000, 1_000) == 301_000
    assert next_slot(1_000, 300_999) == 301_000
    assert next_slot(1_000, 301_000) == 601_000


def test_whoever_is_a_day_late_goes_on_with_the_slot_that_follows():
    assert next_slot(0, 86_400_000 + 7) == 86_400_000 + SLOT_MS


def test_subscriptions_made_in_one_minute_come_due_spread_over_that_minute():
    assert len({next_slot(created, 10**12) % SLOT_MS for created in range(0, 60_000, 1_000)}) == 60


@proves("webhook.thinned")
def test_a_failing_endpoint_is_tried_in_every_second_fourth_and_at_last_every_twelfth_slot():
    assert [slots_apart(failures) for failures in range(9)] == [1, 2, 4, 6, 8, 10, 12, 12, 12]
    assert slots_apart(10**6) == THINNEST


def test_a_due_time_further_ahead_than_any_schedule_is_the_work_of_a_clock_set_back():
    assert not is_misplaced(next_slot(0, 0), 0)
    assert is_misplaced(FAR_MS + 1, 0)
    assert not is_misplaced(next_slot(0, 0, slots=THINNEST), 0, failing=True)
    assert is_misplaced(FAR_FAILING_MS + 1, 0, failing=True)


DAY = 86_400_000
ERROR = Attempt(500, "http_500", 5)


@pytest.mark.parametrize(("attempts", "middle"), [(1, 5), (2, 30), (3, 120)])
def test_attempts_are_5_30_and_120_seconds_apart_give_or_take_a_fifth(attempts, middle):
    delays = [retry_delay(attempts, ERROR, lambda n=n: n / 10) for n in range(11)]
    assert (min(delays), max(delays)) == pytest.approx((middle * 0.8, middle * 1.2))


def test_there_are_four_attempts_two_after_a_refusal_and_one_after_410():
    assert retry_delay(4, ERROR) is None
    assert retry_delay(1, Attempt(404, "http_404", 5)) is not None
    assert retry_delay(2, Attempt(404, "http_404", 5)) is None
    assert retry_delay(1, Attempt(410, "http_410", 5)) is None


def test_a_retry_after_lengthens_the_wait_and_never_shortens_it():
    assert retry_delay(1, Attempt(429, "http_429", 5, 60.0)) == 60.0
    assert retry_delay(3, Attempt(429, "http_429", 5, 1.0)) > 90


def test_a_success_forgets_the_failures_and_remembers_slowness():
    failing = subscription(consecutive_failures=3, failing_since=NOW - 5, last_error="timeout", failed_count=3)
    after = after_success(failing, fire(status=204, duration_ms=10), NOW)
    assert (after.consecutive_failures, after.failing_since, after.last_error, after.slow) == (0, None, None, 0)
    assert (after.delivered_count, after.failed_count, after.last_delivered_at) == (1, 3, NOW)
    assert after_success(failing, fire(status=204, duration_ms=2001), NOW).slow == 1


def test_failures_thin_out_the_fires():
    after = subscription()
    for failures, slots in ((1, 2), (2, 4), (3, 6)):
        after = after_failure(after, fire(status=500, error="http_500"), NOW)
        assert (after.consecutive_failures, after.due_at) == (failures, NOW + slots * SLOT_MS)
    assert (after.failing_since, after.state) == (NOW, "active")


def test_a_day_of_failures_and_twelve_of_them_pause():
    almost = subscription(consecutive_failures=10, failing_since=NOW - DAY)
    assert after_failure(almost, fire(), NOW).state == "active"
    young = subscription(consecutive_failures=50, failing_since=NOW - DAY + 1)
    assert after_failure(young, fire(), NOW).state == "active"
    both = after_failure(subscription(consecutive_failures=11, failing_since=NOW - DAY), fire(), NOW)
    assert (both.state, both.pause_reason, both.paused_at) == ("paused", "endpoint_failing", NOW)


def test_410_pauses_at_once_and_a_paused_one_keeps_its_reason():
    gone = after_failure(subscription(), fire(status=410, error="http_410"), NOW)
    assert (gone.state, gone.pause_reason) == ("paused", "endpoint_gone")
    paused = subscription(state="paused", pause_reason="operator")
    assert after_failure(paused, fire(status=410), NOW).pause_reason == "operator"


def test_a_clock_set_back_does_not_lengthen_the_time_of_failing():
    after = after_failure(subscription(failing_since=NOW + DAY), fire(), NOW)
    assert after.failing_since == NOW


def test_what_did_not_arrive_is_untold_unless_the_condition_has_moved_on():
    report = fire(state_before=b"before", state_after=b"after")
    assert untell(subscription(condition_state=b"after"), report).condition_state == b"before"
    assert untell(subscription(condition_state=b"later"), report).condition_state == b"later"
    assert untell(subscription(condition_state=b"after"), fire()).condition_state == b"after"
