import pytest

from tests.webhooks.shop import NOW, fire, subscription
from toolserver.webhooks.records import Attempt
from toolserver.webhooks.schedule import SLOT_MS, after_failure, after_success, retry_delay, untell

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
    told = fire(state_before=b"before", state_after=b"after")
    assert untell(subscription(condition_state=b"after"), told).condition_state == b"before"
    assert untell(subscription(condition_state=b"later"), told).condition_state == b"later"
    assert untell(subscription(condition_state=b"after"), fire()).condition_state == b"after"
