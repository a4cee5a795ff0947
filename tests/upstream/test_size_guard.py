"""A list that is far shorter than usual is withheld until a second provider lists few as well."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from tests.calls.parts import number_source
from toolserver.core.models import DataPoint
from toolserver.upstream.outlier_guard import (
    AGREE_S,
    CHANGED_S,
    EVERY_S,
    KEEP_S,
    LEAST,
    LEAST_USUAL,
    MOST,
    SERIES,
    SHARE,
    SizeGuard,
)
from toolserver.upstream.source import SourceUnproved

START = datetime(2027, 1, 15, 8, tzinfo=UTC)
ONE, TWO = number_source("Test.one", lists="fires"), number_source("Test.two", lists="fires")
OTHER = number_source("Test.other", lists="floods")


class Rows(NamedTuple):
    rows: tuple[int, ...]
    stamp: datetime | None = None


def rows(count: int) -> Rows:
    return Rows(tuple(range(count)), START)


def lived(counts, *sources, save=None) -> SizeGuard:
    """A guard that saw so many items of each source, every six hours until START."""
    guard = SizeGuard(save)
    for number, count in enumerate(counts):
        for source in sources or (ONE,):
            guard.check(source, source.name, rows(count), START - timedelta(seconds=EVERY_S * (len(counts) - number)))
    return guard


def see(guard: SizeGuard, count: int, after_s: float = 0, source=ONE) -> None:
    guard.check(source, source.name, rows(count), START + timedelta(seconds=after_s))


def test_three_rows_of_usually_fifty_prove_nothing():
    guard = lived([50] * 8)
    with pytest.raises(SourceUnproved, match="3 items of usually 50"):
        see(guard, 3)
    with pytest.raises(SourceUnproved):
        see(guard, 0, 60)
    with pytest.raises(SourceUnproved):
        see(guard, 7, 120)
    see(guard, 8, 180)


def test_what_is_short_is_not_taken_for_usual():
    guard = lived([50] * LEAST)
    for hours in range(0, 47):
        with pytest.raises(SourceUnproved):
            see(guard, 3, hours * 3600)
    assert guard.usual(ONE.name) == 50


def test_a_second_provider_of_the_same_that_lists_few_is_believed_and_so_is_the_first():
    guard = lived([50] * 8, ONE, TWO)
    with pytest.raises(SourceUnproved):
        see(guard, 3)
    see(guard, 4, 1, TWO)
    see(guard, 3, AGREE_S)
    with pytest.raises(SourceUnproved):
        see(guard, 3, 2 * AGREE_S + 2)


def test_neither_a_provider_of_other_things_nor_one_without_a_name_agrees():
    nameless = number_source("Test.nameless"), number_source("Test.nameless_too")
    guard = lived([50] * 8, ONE, OTHER, *nameless)
    for source in (OTHER, *nameless, ONE):
        with pytest.raises(SourceUnproved):
            see(guard, 3, source=source)


def test_a_provider_that_lists_as_many_as_ever_agrees_with_nothing():
    guard = lived([50] * 8, ONE, TWO)
    see(guard, 49, 0, TWO)
    with pytest.raises(SourceUnproved):
        see(guard, 3, 1)


def test_a_list_that_stays_short_for_two_days_is_the_usual_one():
    guard = lived([50] * 8)
    for after_s in (0, CHANGED_S - 1):
        with pytest.raises(SourceUnproved):
            see(guard, 3, after_s)
    see(guard, 3, CHANGED_S)
    assert guard.usual(ONE.name) is None


def test_a_list_that_was_long_again_meanwhile_is_short_anew():
    guard = lived([50] * 8)
    with pytest.raises(SourceUnproved):
        see(guard, 3)
    see(guard, 48, CHANGED_S - 60)
    with pytest.raises(SourceUnproved):
        see(guard, 3, CHANGED_S)


def test_nothing_is_judged_in_the_first_day_nor_where_there_are_usually_few():
    see(lived([50] * (LEAST - 1)), 3)
    see(lived([19] * 8), 0)


def test_a_calm_sunday_after_a_week_of_work_is_no_false_alarm():
    week = [60, 70, 65, 62] * 5 + [22, 18, 21, 20] * 2
    guard = lived(week)
    see(guard, 14)


def test_half_a_week_of_a_storm_makes_the_calm_after_it_no_suspect():
    guard = lived([60] * 16 + [400] * 14)
    see(guard, 60)


def test_a_source_may_say_why_its_size_varies_and_what_is_no_list_has_none():
    varies = number_source("Test.varies", size_varies="a list of the hour has any length")
    guard = lived([50] * 8, varies)
    see(guard, 0, source=varies)
    assert guard.usual(varies.name) is None
    guard.check(ONE, "number", 7.0, START)
    assert guard.usual("number") is None


def test_a_reason_is_a_sentence():
    with pytest.raises(TypeError, match="varies"):
        number_source(size_varies="it varies")


def test_the_history_is_small_however_often_a_source_is_read():
    saved = []
    guard = SizeGuard(lambda *point: saved.append(point))
    for minute in range(0, 24 * 60, 5):
        see(guard, 50, minute * 60)
    assert saved == [(SERIES, ONE.name, DataPoint(START + timedelta(hours=h), 50.0), KEEP_S) for h in (0, 6, 12, 18)]
    assert MOST * EVERY_S == 7.5 * 86400


def test_a_restart_and_several_processes_change_nothing():
    saved = []
    lived([50] * 8, save=lambda series, key, point, keep_s: saved.append((series, key, point, keep_s)))
    stored = [(series, key, point.at.timestamp(), point.value, keep_s) for series, key, point, keep_s in saved]
    guard = SizeGuard()
    guard.restore(("other", ONE.name, START.timestamp() - n * EVERY_S, 1.0, 60.0) for n in range(40, 20, -1))
    guard.restore(each for pair in stored for each in (pair, (*pair[:2], pair[2] + 60, 1.0, pair[4])))
    assert guard.usual(ONE.name) == 50
    with pytest.raises(SourceUnproved):
        see(guard, 3)


def test_a_new_length_is_the_usual_one_after_a_restart_too():
    saved = []
    guard = lived([50] * 8, save=lambda series, key, point, keep_s: saved.append((series, key, point, keep_s)))
    with pytest.raises(SourceUnproved):
        see(guard, 3)
    for number in range(LEAST):
        see(guard, 3, CHANGED_S + number * EVERY_S)
    after = SizeGuard()
    after.restore((series, key, point.at.timestamp(), point.value, keep_s) for series, key, point, keep_s in saved)
    assert after.usual(ONE.name) == guard.usual(ONE.name) == 3


def test_the_numbers_of_the_guard_are_those_that_the_feeds_were_measured_with():
    assert (SHARE, LEAST_USUAL, LEAST, MOST) == (0.15, 20, 4, 30)
    assert (EVERY_S, AGREE_S, CHANGED_S, KEEP_S) == (21_600, 600, 172_800, 2_592_000)


@pytest.mark.parametrize(("usual", "count", "is_short"), [(20, 2, True), (20, 3, False), (19, 0, False)])
def test_a_list_is_short_below_its_share_of_what_is_usually_enough_to_tell(usual, count, is_short):
    guard = lived([usual] * 8)
    if is_short:
        with pytest.raises(SourceUnproved, match=f"{count} items of usually {usual}"):
            see(guard, count)
    else:
        see(guard, count)
