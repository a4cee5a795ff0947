"""The time of an exchange: carried over, stopped, and over."""

import anyio
import pytest

from toolserver.upstream.sending_time import SendingTime
from toolserver.upstream.source_errors import SourceDown


async def test_when_the_time_is_over_the_source_has_not_answered():
    spending = SendingTime(0.01)
    with pytest.raises(SourceDown, match="no answer") as caught, spending.spend():
        await anyio.sleep_forever()
    assert caught.value.word == "timeout"
    assert (spending.left_s, spending.is_mostly_over) == (0, True)


async def wait_and_fail():
    await anyio.sleep(0.01)
    raise KeyError


async def test_a_second_attempt_has_what_the_first_one_left():
    spending = SendingTime(60)
    with spending.spend():
        await anyio.sleep(0.01)
    left = spending.left_s
    assert 59 < left < 60
    with pytest.raises(KeyError), spending.spend():
        await wait_and_fail()
    assert spending.left_s < left
    assert not spending.is_mostly_over


async def test_a_pause_costs_nothing_of_the_time():
    spending = SendingTime(0.02)
    with spending.spend():
        with spending.pause():
            await anyio.sleep(0.05)
        left = spending.left_s
    assert left == 0.02
    assert spending.left_s == pytest.approx(0.02)


async def test_time_that_does_not_run_can_be_paused():
    spending = SendingTime(1)
    with spending.pause():
        pass
    assert spending.left_s == 1


@pytest.mark.parametrize(("left_s", "is_mostly_over"), [(60, False), (30, False), (29.9, True), (0, True)])
def test_a_time_is_mostly_over_when_less_than_half_is_left(left_s, is_mostly_over):
    spending = SendingTime(60)
    spending.left_s = left_s
    assert spending.is_mostly_over is is_mostly_over
