"""How many large bodies are held and parsed at once."""

import threading

import anyio
import pytest

import toolserver.upstream.http_sender as module
from toolserver.upstream.http_sender import PARSED_APART_FROM, STEPS, LargeBodies, SendingTime, TooManyBodies
from toolserver.upstream.source import SourceDown


async def pieces(*sizes):
    for size in sizes:
        yield bytes(size)


class Holder:
    """A body that is read and then held until it is released."""

    def __init__(self, bodies, *sizes):
        self._bodies, self._sizes = bodies, sizes
        self.is_read, self.released, self.spending = False, anyio.Event(), SendingTime(60)

    async def run(self):
        with self._bodies.reserve(self.spending) as place:
            with self.spending.spend():
                async for _ in place.admit(pieces(*self._sizes)):
                    pass
            self.is_read = True
            await self.released.wait()


@pytest.mark.parametrize(("step", "smaller"), [(0, 20), (1, 6)])
async def test_so_many_large_bodies_are_held_and_the_next_one_waits_while_smaller_ones_pass(step, smaller):
    bodies = LargeBodies()
    size, places = STEPS[step]
    large = places + 1
    holders = [Holder(bodies, size, 1) for _ in range(large)] + [Holder(bodies, size) for _ in range(smaller)]
    async with anyio.create_task_group() as tasks:
        for holder in holders:
            tasks.start_soon(holder.run)
        await anyio.wait_all_tasks_blocked()
        assert [holder.is_read for holder in holders[:large]] == [True] * places + [False]
        assert [holder.is_read for holder in holders[large:]] == [True] * (smaller if step == 0 else 5) + [False] * (
            0 if step == 0 else 1
        )
        holders[0].released.set()
        await anyio.wait_all_tasks_blocked()
        assert holders[large - 1].is_read
        assert holders[large - 1].spending.left_s > 59
        for holder in holders[1:]:
            holder.released.set()


async def test_waiting_too_long_for_a_place_is_not_the_sources_failure(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    bodies = LargeBodies()
    first, second, third = (Holder(bodies, STEPS[1][0], 1) for _ in range(3))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.run)
        tasks.start_soon(second.run)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(TooManyBodies) as caught:
            await third.run()
        assert (caught.value.was_sent, caught.value.word) == (False, "budget")
        tasks.cancel_scope.cancel()


async def test_a_large_body_is_parsed_off_the_event_loop_one_at_a_time():
    bodies, running, most = LargeBodies(), [], []
    lock = threading.Lock()

    def parse():
        with lock:
            running.append(threading.current_thread())
            most.append(len(running))
        running.pop()
        return threading.current_thread()

    assert await bodies.parse(PARSED_APART_FROM - 1, parse) is threading.current_thread()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(bodies.parse, PARSED_APART_FROM, parse)
    assert most == [1] * 6
    assert await bodies.parse(PARSED_APART_FROM, parse) is not threading.current_thread()


def test_a_body_needs_a_place_from_a_quarter_of_a_mebibyte_and_another_from_two():
    assert STEPS == ((262_144, 8), (2_097_152, 2))
    assert (PARSED_APART_FROM, module.MOST_PARSED, module.PATIENCE_S) == (65_536, 1, 20)


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
