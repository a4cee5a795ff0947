"""Work done once for all who ask for it at the same time."""

import anyio
import pytest

from toolserver.core.single_flight import SingleFlight


class Work:
    """Counts its runs; each waits until it is let go, then returns its number or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs, self.let_go, self._error = 0, anyio.Event(), error

    async def __call__(self) -> int:
        self.runs += 1
        number = self.runs
        await self.let_go.wait()
        if self._error is not None:
            raise self._error
        return number


@pytest.fixture(params=["in a task group", "in the caller's task"])
async def flight(request):
    async with anyio.create_task_group() as tasks:
        yield SingleFlight(tasks if request.param == "in a task group" else None)


async def ask_ten_times(flight, work):
    results = []

    async def ask():
        try:
            results.append(await flight.do("key", work))
        except ValueError as error:
            results.append(error)

    async with anyio.create_task_group() as callers:
        for _ in range(10):
            callers.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        work.let_go.set()
    return results


async def test_ten_callers_share_one_run(flight):
    work = Work()
    assert (await ask_ten_times(flight, work), work.runs) == ([1] * 10, 1)


async def test_a_failure_is_raised_to_each_caller_and_not_kept(flight):
    work, failure = Work(failure := ValueError("no")), failure
    assert (await ask_ten_times(flight, work), work.runs) == ([failure] * 10, 1)
    with pytest.raises(ValueError, match="no"):
        await flight.do("key", work)
    assert work.runs == 2


async def test_another_key_is_other_work(flight):
    work = Work()
    work.let_go.set()
    assert [await flight.do("a", work), await flight.do("b", work), await flight.do("a", work)] == [1, 2, 3]


async def cancel_the_first_of_two(flight, work):
    """Two callers ask; the first one is cancelled before the work ends. Returns what the second one gets."""
    results = []
    async with anyio.create_task_group() as callers:
        first = anyio.CancelScope()

        async def hang_up():
            with first:
                await flight.do("key", work)

        async def stay():
            results.append(await flight.do("key", work))

        callers.start_soon(hang_up)
        await anyio.wait_all_tasks_blocked()
        callers.start_soon(stay)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        work.let_go.set()
    return results


async def test_in_a_task_group_a_cancelled_caller_ends_only_its_own_wait():
    work = Work()
    async with anyio.create_task_group() as tasks:
        assert (await cancel_the_first_of_two(SingleFlight(tasks), work), work.runs) == ([1], 1)


async def test_in_the_callers_task_one_who_waits_starts_the_work_again():
    work = Work()
    assert (await cancel_the_first_of_two(SingleFlight(), work), work.runs) == ([2], 2)


async def test_started_work_runs_without_a_caller_and_needs_a_task_group():
    work = Work()
    async with anyio.create_task_group() as tasks:
        flight = SingleFlight(tasks)
        flight.start("key", work)
        flight.start("key", work)
        await anyio.wait_all_tasks_blocked()
        assert work.runs == 1
        work.let_go.set()
    with pytest.raises(RuntimeError, match="task group"):
        SingleFlight().start("key", work)


async def test_when_the_service_stops_those_who_wait_are_not_left_waiting():
    work, raised = Work(), []
    async with anyio.create_task_group() as callers:
        async with anyio.create_task_group() as tasks:
            flight = SingleFlight(tasks)

            async def ask():
                try:
                    await flight.do("key", work)
                except RuntimeError as error:
                    raised.append(str(error))

            callers.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert raised == ["the service is stopping"]
