"""Jumps are withheld until someone agrees."""

from datetime import timedelta

import pytest

from tests.calls.parts import START, Number, number_source
from toolserver.upstream.outlier_guard import OutlierGuard
from toolserver.upstream.source import Gauge
from toolserver.upstream.source_errors import SourceImplausible

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
