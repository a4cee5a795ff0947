"""How old is too old."""

from datetime import timedelta

import pytest

from tests.calls.parts import START, Number, number_source
from toolserver.upstream.freshness import AHEAD_S, BACK_S, STILL_S, StillnessGuard, judge, judge_order, judge_times
from toolserver.upstream.source import SourceAnswer, SourceChanged, SourceFrozen


def judged(age_s, *, sla_s=0.0, dated_age_s=None, **more):
    dated = None if dated_age_s is None else START - timedelta(seconds=dated_age_s)
    source = number_source(fresh_s=60, **more)
    answer = SourceAnswer(1, START - timedelta(seconds=age_s), None, dated)
    return judge(source, answer, now=START, sla_s=sla_s)


@pytest.mark.parametrize(
    ("age_s", "sla_s", "stale"), [(60, 0, False), (61, 0, True), (61, 120, False), (121, 120, True), (60, 30, False)]
)
def test_an_answer_is_stale_once_it_is_older_than_its_freshness_and_the_promise(age_s, sla_s, stale):
    found = judged(age_s, sla_s=sla_s)
    assert (found.age_s, found.stale) == (age_s, stale)


@pytest.mark.parametrize(("dated_age_s", "stale"), [(None, False), (600, False), (601, True)])
def test_a_fresh_answer_about_an_old_thing_is_stale(dated_age_s, stale):
    assert judged(1, sla_s=3600, dated_age_s=dated_age_s, newest_max_s=600).stale is stale


def test_a_document_older_than_its_limit_is_frozen_and_one_to_come_is_none():
    source = number_source(newest_max_s=600)
    for dated in (None, START - timedelta(seconds=600), START + timedelta(days=1)):
        judge_times(source, dated, START)
    with pytest.raises(SourceFrozen):
        judge_times(source, START - timedelta(seconds=601), START)
    with pytest.raises(SourceChanged):
        judge_times(source, START + timedelta(days=1, seconds=1), START)


def test_without_a_limit_the_age_of_the_newest_item_does_not_count():
    assert not judged(1, dated_age_s=10**9).stale


@pytest.mark.parametrize(
    ("advances", "newest_s", "before_s", "since_s", "frozen"),
    [
        (True, -60, 0, BACK_S, True),
        (True, None, 0, 60, True),
        (True, 0, 0, 60, False),
        (True, 60, 0, 60, False),
        (True, -60, None, 60, False),
        (True, -60, 0, BACK_S + 1, False),
        (False, -60, 0, 60, False),
    ],
)
def test_the_newest_item_does_not_go_back_within_an_hour(advances, newest_s, before_s, since_s, frozen):
    newest, before = (None if s is None else START + timedelta(seconds=s) for s in (newest_s, before_s))
    source = number_source(advances=advances)

    def order():
        previous = SourceAnswer(1, START - timedelta(seconds=since_s), before, None)
        judge_order(source, SourceAnswer(2, START, newest, None), previous)

    if frozen:
        with pytest.raises(SourceFrozen, match="went back from 2027-01-15 08:00"):
            order()
    else:
        order()


def test_a_document_may_be_a_day_ahead_and_its_newest_item_goes_back_after_an_hour():
    assert (AHEAD_S, BACK_S) == (86_400, 3_600)


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
