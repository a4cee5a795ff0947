from hypothesis import given
from hypothesis import strategies as st

from toolserver.webhooks.schedule import (
    FAR_FAILING_MS,
    FAR_MS,
    SLOT_MS,
    THINNEST,
    is_misplaced,
    next_slot,
    slots_apart,
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


def test_a_failing_endpoint_is_tried_in_every_second_fourth_and_at_last_every_twelfth_slot():
    assert [slots_apart(failures) for failures in range(9)] == [1, 2, 4, 6, 8, 10, 12, 12, 12]
    assert slots_apart(10**6) == THINNEST


def test_a_due_time_further_ahead_than_any_schedule_is_the_work_of_a_clock_set_back():
    assert not is_misplaced(next_slot(0, 0), 0)
    assert is_misplaced(FAR_MS + 1, 0)
    assert not is_misplaced(next_slot(0, 0, slots=THINNEST), 0, failing=True)
    assert is_misplaced(FAR_FAILING_MS + 1, 0, failing=True)
