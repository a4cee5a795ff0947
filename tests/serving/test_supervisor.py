"""The supervisor: it starts, starts again, renews and ends workers, which here are objects and no processes."""

import sys
from dataclasses import replace

import anyio
import pytest

from toolserver.serving.supervisor import (
    MOST_DEATHS,
    REPLACED,
    STOP,
    WORKER_TIMES,
    Supervisor,
    WorkerFailed,
    WorkerProcess,
    WorkerTimes,
    describe_status,
)


class Team:
    """Workers that start when they are asked to, and everything that happened to them, in order."""

    def __init__(self):
        self.events = []
        self.workers = []
        self.broken = set()  # numbers of which no further worker becomes ready
        self.deaf = False
        self.changed = anyio.Event()

    async def start(self, number):
        worker = Worker(self, number, f"{number}{'abcdefghijk'[sum(w.number == number for w in self.workers)]}")
        self.workers.append(worker)
        return worker

    def say(self, *event):
        self.events.append(event)
        self.changed.set()
        self.changed = anyio.Event()

    async def wait_for(self, *event):
        with anyio.fail_after(20):
            while event not in self.events:
                await self.changed.wait()

    def now(self, name):
        return next(worker for worker in self.workers if worker.name == name)


class Worker:
    def __init__(self, team, number, name):
        self.team, self.number, self.name, self.pid = team, number, name, 1
        self.began, self._ended, self.status = anyio.current_time(), anyio.Event(), None

    @property
    def is_running(self):
        return self.status is None

    async def wait_until_ready(self, within_s):
        self.team.say("start", self.name)
        if self.number in self.team.broken:
            self.end(1)
            raise WorkerFailed(f"worker {self.number} ended")
        self.team.say("ready", self.name)
        return {"pid": self.name}

    async def wait(self):
        await self._ended.wait()
        return self.status

    async def tell(self, word):
        if self.is_running:
            self.team.say(word, self.name)
            if not self.team.deaf:
                self.end(0)

    def end(self, status):
        if self.is_running:
            self.status = status
            self._ended.set()
            self.team.say("end", self.name)

    def kill(self):
        if self.is_running:
            self.team.say("kill", self.name)
            self.end(-9)

    async def close(self):
        assert not self.is_running


AT_ONCE = WorkerTimes(first_wait_s=0.0, stop_s=0.0, leave_s=0.0)
"""Nobody is waited for, neither before a start nor at the end."""


async def run_with(team, scenario, count=2, times=WORKER_TIMES):
    """Run a supervisor while a scenario plays, then stop it: what the workers said when all were ready."""
    stop, said = anyio.Event(), []
    supervisor = Supervisor(count, team.start, times)

    async def play():
        for number in range(count):
            await team.wait_for("ready", f"{number}a")
        await scenario(supervisor)
        stop.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(play)
            try:
                await supervisor.run(stop, said.extend)
            finally:
                tasks.cancel_scope.cancel()
    return said


async def nothing(supervisor):
    pass


async def test_the_first_one_is_ready_before_others_start_and_all_are_stopped_together():
    team = Team()
    said = await run_with(team, nothing, 3)
    assert [each["pid"] for each in said] == ["0a", "1a", "2a"]
    assert team.events[:2] == [("start", "0a"), ("ready", "0a")]
    assert [event for event in team.events if event[0] == STOP] == [(STOP, "0a"), (STOP, "1a"), (STOP, "2a")]
    assert not any(worker.is_running for worker in team.workers)


async def test_one_that_ends_is_started_again_whatever_its_status():
    team = Team()

    async def scenario(supervisor):
        for old, status, new in (("1a", -9, "1b"), ("1b", 0, "1c")):
            team.now(old).end(status)
            await team.wait_for("ready", new)

    await run_with(team, scenario, times=AT_ONCE)
    assert [worker.name for worker in team.workers] == ["0a", "1a", "1b", "1c"]
    assert (STOP, "1c") in team.events


async def test_one_that_ends_at_once_again_and_again_ends_the_service_with_a_sentence():
    team = Team()

    async def scenario(supervisor):
        team.broken.add(1)
        team.now("1a").end(1)
        await anyio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as ended:
        await run_with(team, scenario, times=AT_ONCE)
    (told,) = ended.value.exceptions
    assert isinstance(told, WorkerFailed)
    assert f"worker 1 ended {MOST_DEATHS + 1} times in a row" in str(told)
    assert sum(worker.number == 1 for worker in team.workers) == 1 + MOST_DEATHS
    assert (STOP, "0a") in team.events, "the others are ended in order"


async def test_one_that_lived_long_enough_is_forgiven_its_early_deaths():
    team = Team()

    async def scenario(supervisor):
        for turn in range(MOST_DEATHS + 3):
            team.now(f"0{'abcdefghijk'[turn]}").end(1)
            await team.wait_for("ready", f"0{'abcdefghijk'[turn + 1]}")

    await run_with(team, scenario, times=replace(AT_ONCE, soon_s=0.0))


@pytest.mark.parametrize("number", [0, 1])
async def test_a_service_of_which_a_worker_does_not_start_ends_with_its_reason(number):
    team = Team()
    team.broken.add(number)
    with pytest.raises(WorkerFailed) as ended, anyio.fail_after(30):
        await Supervisor(2, team.start).run(anyio.Event(), lambda said: pytest.fail("not ready"))
    assert str(ended.value) == f"the service could not start: worker {number} ended"
    assert not any(worker.is_running for worker in team.workers)


async def test_each_is_replaced_by_one_that_is_ready_before_it_leaves():
    team = Team()

    async def scenario(supervisor):
        await supervisor.renew()
        await anyio.wait_all_tasks_blocked()

    await run_with(team, scenario, times=WorkerTimes(first_wait_s=0.0))
    renewed = [event for event in team.events if event[1] not in ("0a", "1a") or event[0] == REPLACED]
    assert renewed[:6] == [
        *(("start", "0b"), ("ready", "0b"), (REPLACED, "0a")),
        *(("start", "1b"), ("ready", "1b"), (REPLACED, "1a")),
    ]
    assert [worker.name for worker in team.workers] == ["0a", "1a", "0b", "1b"], "none is started again"


async def test_when_a_new_one_does_not_start_the_old_ones_go_on():
    team = Team()

    async def scenario(supervisor):
        team.broken.add(0)
        await supervisor.renew()
        assert team.now("0a").is_running
        assert team.now("1a").is_running

    await run_with(team, scenario)
    assert not [event for event in team.events if event[0] == REPLACED]


async def test_one_that_does_not_leave_in_time_is_killed():
    team = Team()
    team.deaf = True
    await run_with(team, Supervisor.renew, times=AT_ONCE)
    assert team.events.index((REPLACED, "0a")) < team.events.index(("kill", "0a"))
    assert team.events.index((STOP, "0b")) < team.events.index(("kill", "0b"))
    assert not any(worker.is_running for worker in team.workers)


async def test_all_can_be_killed_at_once():
    team = Team()
    stop, supervisor = anyio.Event(), Supervisor(2, team.start)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run, stop, lambda said: None)
        await team.wait_for("ready", "1a")
        stop.set()
        supervisor.kill_all()
    assert {("kill", "0a"), ("kill", "1a")} <= set(team.events)


def test_the_wait_before_a_start_grows_up_to_a_bound():
    assert [WORKER_TIMES.wait_before(deaths) for deaths in range(7)] == [0, 0.5, 1, 2, 4, 8, 8]


@pytest.mark.parametrize(("drain_s", "stop_s"), [(0, 14), (5, 14), (30, 39)])
def test_workers_that_drain_longer_have_longer_to_end(drain_s, stop_s):
    assert WORKER_TIMES.allow_drain(drain_s).stop_s == stop_s


slow = pytest.mark.slow("it starts Python")

ECHO = """
import json, sys
orders = json.loads(sys.stdin.readline())
print(json.dumps({"ready": True, "orders": orders}), flush=True)
sys.exit({"replaced\\n": 3, "stop\\n": 4, "": 5}[sys.stdin.readline()])
"""


async def start(script, orders=None):
    return await WorkerProcess.start(7, [sys.executable, "-c", script], orders or {}, [])


@slow
async def test_it_gets_its_orders_says_that_it_is_ready_and_hears_a_word():
    worker = await start(ECHO, {"number": 7})
    assert await worker.wait_until_ready(30) == {"ready": True, "orders": {"number": 7}}
    assert worker.is_running
    await worker.tell(REPLACED)
    assert await worker.wait() == 3
    assert not worker.is_running
    await worker.tell(REPLACED)  # which nobody hears, and which is no error
    await worker.close()


@slow
async def test_the_end_of_the_pipe_is_heard_as_well():
    worker = await start(ECHO)
    await worker.wait_until_ready(30)
    await worker._process.stdin.aclose()
    assert await worker.wait() == 5
    await worker.close()


@slow
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.stdin.readline(); sys.exit(9)", "worker 7 ended with status 9 before it was ready"),
        ("print('hello'); input()", "wrote something other than its ready line"),
        ("print('[]'); input()", "a line to standard output that is not an object"),
        ("import os; os.kill(os.getpid(), 9)", "worker 7 was ended by signal 9 before"),
    ],
)
async def test_one_that_does_not_become_ready_says_how_it_failed(script, why):
    with pytest.raises(WorkerFailed, match=why):  # noqa: PT012 - either of the two may notice
        worker = await start(script)
        try:
            await worker.wait_until_ready(30)
        finally:
            worker.kill()
            await worker.wait()
            await worker.close()


@slow
async def test_one_that_takes_too_long_has_failed_and_can_be_killed():
    worker = await start("import sys; sys.stdin.read()")
    with pytest.raises(WorkerFailed, match="worker 7 was not ready within 0 seconds"):
        await worker.wait_until_ready(0)
    worker.kill()
    assert await worker.wait() == -9
    worker.kill()  # again, which is no error
    await worker.close()


async def test_a_program_that_is_not_there_is_a_worker_that_failed():
    with anyio.fail_after(30), pytest.raises(WorkerFailed, match="worker 7 cannot be started: No such file"):
        await WorkerProcess.start(7, ["/nowhere/python"], {}, [])


def test_an_end_is_described_in_words():
    assert describe_status(-9) == "was ended by signal 9"
    assert describe_status(1) == "ended with status 1"
