"""Jumps are withheld until someone agrees."""

from datetime import timedelta

import pytest

from tests.engine.parts import START, Number, number_source
from toolserver.errors import SourceImplausible
from toolserver.upstream.plausibility import Plausibility
from toolserver.upstream.source import Gauge

GAUGE = Gauge(lambda n: {"BTC-USD": n.value}, 0.4)
ONE = number_source("Test.one", gauge=GAUGE)
TWO = number_source("Test.two", gauge=GAUGE)


def test_a_jump_is_withheld_and_a_second_provider_confirms_it():
    gate = Plausibility()
    gate.check(ONE, Number(100), START)
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(seconds=30))
    gate.check(TWO, Number(201), START + timedelta(seconds=31))
    gate.check(ONE, Number(200), START + timedelta(seconds=40))


def test_a_jump_that_the_same_provider_repeats_for_ten_minutes_is_believed():
    gate = Plausibility()
    gate.check(ONE, Number(100), START)
    for minutes in (1, 5, 9):
        with pytest.raises(SourceImplausible):
            gate.check(ONE, Number(10), START + timedelta(minutes=minutes))
    gate.check(ONE, Number(10), START + timedelta(minutes=11.1))


def test_a_move_within_the_limit_and_a_comparison_with_yesterday_pass():
    gate = Plausibility()
    gate.check(ONE, Number(100), START)
    gate.check(ONE, Number(139), START + timedelta(seconds=30))
    gate.check(ONE, Number(9), START + timedelta(hours=25))


def test_a_provider_that_disagrees_confirms_nothing():
    gate = Plausibility()
    gate.check(ONE, Number(100), START)
    gate.check(TWO, Number(101), START)
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(seconds=30))
    with pytest.raises(SourceImplausible):
        gate.check(ONE, Number(200), START + timedelta(seconds=60))
