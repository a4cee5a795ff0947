"""What has to move and does not is frozen."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.calls.parts import Number, number_source
from toolserver.upstream.source_errors import SourceFrozen
from toolserver.upstream.stillness_guard import STILL_S, StillnessGuard

START = datetime(2027, 1, 15, 8, tzinfo=UTC)
PRICE = number_source(moves=lambda found: found.value)


def seen(guard: StillnessGuard, value: float, after_s: float, source=PRICE) -> None:
    guard.check(source, source.name, Number(value), START + timedelta(seconds=after_s))


def test_nothing_that_has_to_move_stands_for_more_than_five_minutes():
    assert STILL_S == 300


def test_a_price_that_stands_still_for_too_long_is_frozen_until_it_moves():
    guard = StillnessGuard()
    seen(guard, 1.0, 0)
    seen(guard, 1.0, STILL_S)
    with pytest.raises(SourceFrozen, match="the same since 2027-01-15 08:00"):
        seen(guard, 1.0, STILL_S + 1)
    with pytest.raises(SourceFrozen):
        seen(guard, 1.0, 10 * STILL_S)
    seen(guard, 1.1, 10 * STILL_S + 1)
    seen(guard, 1.1, 11 * STILL_S)


def test_what_need_not_move_may_stand_still():
    guard = StillnessGuard()
    for after_s in (0, 10 * STILL_S):
        seen(guard, 1.0, after_s, number_source())


def test_what_was_believed_already_is_compared_with_and_not_judged():
    guard = StillnessGuard()
    for after_s in (0, 2 * STILL_S):
        guard.remember(PRICE, PRICE.name, Number(1.0), START + timedelta(seconds=after_s))
    with pytest.raises(SourceFrozen, match="the same since 2027-01-15 08:00"):
        seen(guard, 1.0, 2 * STILL_S)
    guard.remember(PRICE, PRICE.name, Number(1.1), START + timedelta(seconds=3 * STILL_S))
    seen(guard, 1.1, 3 * STILL_S)
