"""Jumps are withheld until someone agrees."""

from datetime import timedelta

import pytest

from tests.calls.parts import START, Number, number_source
from toolserver.upstream.outlier_guard import AGREES, MEMORY_S, REPEAT_S, OutlierGuard
from toolserver.upstream.source import Gauge, SourceImplausible

GAUGE = Gauge(lambda n: {"BTC-USD": n.value}, 0.4)
ONE = number_source("Test.one", gauge=GAUGE)
TWO = number_source("Test.two", gauge=GAUGE)


def test_a_jump_is_withheld_and_a_second_provider_confirms_it():
    gate = OutlierGuard()
    gate.check(ONE, Number(100), START)
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(seconds=30))
    gate.check(TWO, Number(201), START + timedelta(seconds=31))
    gate.check(ONE, Number(200), START + timedelta(seconds=40))


def test_a_jump_that_the_same_provider_repeats_for_ten_minutes_is_believed():
    gate = OutlierGuard()
    gate.check(ONE, Number(100), START)
    for minutes in (1, 5, 9):
        with pytest.raises(SourceImplausible):
            gate.check(ONE, Number(10), START + timedelta(minutes=minutes))
    gate.check(ONE, Number(10), START + timedelta(minutes=11.1))


def test_a_move_within_the_limit_and_a_comparison_with_yesterday_pass():
    gate = OutlierGuard()
    gate.check(ONE, Number(100), START)
    gate.check(ONE, Number(139), START + timedelta(seconds=30))
    gate.check(ONE, Number(9), START + timedelta(hours=25))


def test_a_provider_that_disagrees_confirms_nothing():
    gate = OutlierGuard()
    gate.check(ONE, Number(100), START)
    gate.check(TWO, Number(101), START)
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(seconds=30))
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(seconds=60))


def test_an_agreement_of_more_than_ten_minutes_ago_confirms_nothing():
    gate = OutlierGuard()
    gate.check(ONE, Number(100), START)
    gate.check(TWO, Number(200), START)
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(minutes=11))


def jumps(source, before, value, after_s=30.0):
    guard = OutlierGuard()
    guard.check(source, Number(before), START)
    try:
        guard.check(source, Number(value), START + timedelta(seconds=after_s))
    except SourceImplausible:
        return True
    return False


@pytest.mark.parametrize(("value", "jumped"), [(140, False), (140.1, True), (60, False), (59.9, True)])
def test_a_move_by_exactly_the_limit_is_none_up_or_down(value, jumped):
    assert jumps(ONE, 100, value) is jumped
    assert jumps(ONE, -100, -value) is jumped


@pytest.mark.parametrize(("value", "jumped"), [(105, False), (105.1, True), (95, False), (94.9, True)])
def test_an_absolute_limit_is_in_the_unit_of_the_value(value, jumped):
    absolute = number_source("Test.absolute", gauge=Gauge(lambda n: {"level": n.value}, 5, absolute=True))
    assert jumps(absolute, 100, value) is jumped


def test_a_value_is_compared_with_for_a_day():
    assert (jumps(ONE, 100, 200, MEMORY_S), jumps(ONE, 100, 200, MEMORY_S + 1)) == (True, False)
    assert (MEMORY_S, REPEAT_S, AGREES) == (86_400, 600, 0.02)


def test_a_jump_is_believed_when_it_is_repeated_after_exactly_ten_minutes():
    guard = OutlierGuard()
    guard.check(ONE, Number(100), START)
    for after_s in (0, REPEAT_S - 1):
        with pytest.raises(SourceImplausible, match="BTC-USD jumped to 200"):
            guard.check(ONE, Number(200), START + timedelta(seconds=after_s))
    guard.check(ONE, Number(200), START + timedelta(seconds=REPEAT_S))


def test_another_jump_begins_the_ten_minutes_anew_and_a_good_value_forgets_it():
    guard = OutlierGuard()
    guard.check(ONE, Number(100), START)
    for minutes, value in ((1, 200), (5, 400), (11, 400), (12, 100), (13, 400), (22, 400)):
        at = START + timedelta(minutes=minutes)
        if value == 100:
            guard.check(ONE, Number(value), at)
        else:
            with pytest.raises(SourceImplausible):
                guard.check(ONE, Number(value), at)
    guard.check(ONE, Number(400), START + timedelta(minutes=23))


@pytest.mark.parametrize(("other", "after_s", "is_confirmed"), [(204, 600, True), (205, 600, False), (204, 601, False)])
def test_another_provider_confirms_within_two_percent_and_ten_minutes(other, after_s, is_confirmed):
    guard = OutlierGuard()
    guard.check(TWO, Number(other), START)
    guard.remember(ONE, Number(100), START)
    at = START + timedelta(seconds=after_s)
    if is_confirmed:
        guard.check(ONE, Number(200), at)
    else:
        with pytest.raises(SourceImplausible):
            guard.check(ONE, Number(200), at)


def test_a_source_without_a_gauge_may_say_anything():
    guard = OutlierGuard()
    for value in (1, 10**9):
        guard.check(number_source(), Number(value), START)
        guard.remember(number_source(), Number(value), START)
