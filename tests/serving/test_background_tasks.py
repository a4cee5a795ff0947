"""Background tasks: jobs that repeat, sources that are kept warm, tools that are recomposed, counts that are stored."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import anyio
import pytest

from tests.catalog.tiny import PLACE
from tests.redis_server import LostMemory, memory_in
from toolserver.clock import ManualClock
from toolserver.core.metrics import WINDOW_H, Usage
from toolserver.serving import background_tasks
from toolserver.serving.background_tasks import (
    FOLLOWED_S,
    LOOK_S,
    WARM_EVERY_S,
    SharedUsage,
    follow_asked,
    keep_live,
    keep_usage,
    keep_warm,
    prepare_expected,
    repeat,
    start_composing,
)
from toolserver.upstream.source import SourceDown

START = datetime(2027, 1, 15, tzinfo=UTC)


class Naps:
    """Takes the place of `anyio.sleep`: notes how long each sleep is, and lets the test act between two of them."""

    def __init__(self, *between) -> None:
        self.seconds: list[float] = []
        self._between = list(between)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if not self._between:
            await anyio.sleep_forever()
        self._between.pop(0)()


def nothing() -> None:
    pass


@pytest.fixture
def napping(monkeypatch):
    def use(*between) -> Naps:
        naps = Naps(*between)
        monkeypatch.setattr(background_tasks, "anyio", SimpleNamespace(sleep=naps.sleep))
        return naps

    return use


async def until_asleep(function, *args) -> None:
    """Run a task until it sleeps for ever."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(function, *args)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()


async def test_a_job_that_fails_is_logged_and_runs_again(napping, caplog):
    naps, runs = napping(nothing, nothing), []

    async def job():
        runs.append(1)
        if len(runs) < 3:
            raise OSError("disk full")

    await until_asleep(repeat, "sweep", job, 7.0)

    assert (len(runs), naps.seconds) == (3, [7.0] * 3)
    assert [(r.getMessage(), r.job) for r in caplog.records] == [("a background job failed", "sweep")] * 2


class Cache:
    """Notes the reads, and fails for one of the queries."""

    def __init__(self, fails=None) -> None:
        self.reads, self._fails = [], fails

    async def fresh(self, source, query, *, sla_s):
        self.reads.append((query, sla_s))
        if query == self._fails:
            raise SourceDown("refused")


def warm(*queries):
    return [SimpleNamespace(warm=tuple((PLACE, query) for query in queries))]


async def test_warm_reads_come_a_second_apart_at_first_and_ten_minutes_apart_later(napping):
    naps, cache = napping(*[nothing] * 3), Cache()

    await until_asleep(keep_warm, warm("a", "b"), cache)

    assert cache.reads == [("a", 0), ("b", 0), ("a", 0)]
    assert naps.seconds == [1.0, 1.0, WARM_EVERY_S, WARM_EVERY_S]


async def test_a_source_that_fails_does_not_end_the_warming_of_the_others(napping):
    napping(nothing, nothing)
    cache = Cache(fails="a")

    await until_asleep(keep_warm, warm("a", "b"), cache)

    assert [query for query, _ in cache.reads] == ["a", "b"]


async def test_without_warm_reads_the_task_ends(napping):
    napping()
    with anyio.fail_after(5):
        await keep_warm(warm(), Cache())


def followed(clock, refreshed):
    """A tool that is recomposed every ten seconds, and a pipeline in which nobody has called it yet."""
    operation = SimpleNamespace(name="pulse", follow_s=10.0)
    answers = SimpleNamespace(refresh=lambda chosen: refreshed.append((chosen.name, clock.monotonic())))
    return [operation], SimpleNamespace(asked_at={}, answers=answers)


async def test_a_followed_tool_is_recomposed_at_its_pace_for_ten_minutes_after_a_call(napping):
    clock, refreshed = ManualClock(START), []
    registry, pipeline = followed(clock, refreshed)
    begun = clock.monotonic()

    def call():
        pipeline.asked_at["pulse"] = clock.monotonic()

    steps = [nothing, call, lambda: clock.advance(9), lambda: clock.advance(1), lambda: clock.advance(5)]
    steps += [lambda: clock.advance(5), lambda: clock.advance(FOLLOWED_S - 20), lambda: clock.advance(10)]
    napping(*steps)

    await until_asleep(follow_asked, registry, pipeline, clock)

    assert [at - begun for _, at in refreshed] == [10, 20, FOLLOWED_S]


async def test_every_two_seconds_an_answer_that_is_expected_to_be_called_for_is_prepared(napping):
    naps, prepared = napping(nothing, nothing), []
    answers = SimpleNamespace(prepare_expected=lambda: prepared.append(1))

    await until_asleep(prepare_expected, answers)

    assert (naps.seconds, len(prepared)) == ([LOOK_S] * 3, 2)


async def test_usage_is_stored_every_minute(napping):
    clock, saved = ManualClock(START), []
    usage = Usage(clock.now)
    naps = napping(nothing, nothing)

    await until_asleep(keep_usage, usage, SimpleNamespace(save_usage=saved.append))

    assert naps.seconds == [60, 60, 60]
    assert saved == [usage.rows()] * 2


async def test_every_two_seconds_the_cards_are_refreshed_that_are_due(napping):
    naps, refreshed = napping(nothing, nothing), []

    await until_asleep(keep_live, SimpleNamespace(refresh_due=lambda: refreshed.append(1)))

    assert (naps.seconds, len(refreshed)) == ([LOOK_S] * 3, 2)


async def test_everything_that_composes_by_itself_is_started():
    started = []
    tasks = SimpleNamespace(start_soon=lambda task, *_: started.append(task))
    pipeline = SimpleNamespace(answers=SimpleNamespace(clock=None))

    start_composing(tasks, [], None, pipeline, None)

    assert started == [keep_warm, follow_asked, prepare_expected, keep_live]


# --- counts of all instances, also after a restart of one and after Redis was emptied

HALF_PAST = datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
AGENTS = ("curl/8", "ClaudeBot/1")


class Instance:
    """One that counts, on the memory of all."""

    def __init__(self, memory, at=None, rows=()):
        self.at = at or [HALF_PAST]
        self.usage = Usage(lambda: self.at[0])
        self.usage.restore(rows)
        self._shared = SharedUsage(self.usage, memory)

    def count(self, times, agent="curl/8"):
        for _ in range(times):
            self.usage.count(agent, "/api/x", 200, "free", self.at[0].timestamp())

    @property
    def total(self):
        return self.usage.counted().total

    async def exchange(self):
        await self._shared.exchange()


@pytest.fixture
async def memory(redis_server):
    async with memory_in(redis_server, prefix="usage-of-all:") as memory:
        yield memory
    for key in redis_server.command("keys", "usage-of-all:*").split():
        redis_server.command("del", key)


async def exchange(*instances):
    for each in (*instances, *instances):
        await each.exchange()


async def test_each_instance_knows_what_all_have_counted(memory):
    one, two = Instance(memory), Instance(memory)
    one.count(3)
    two.count(2, "ClaudeBot/1")
    await exchange(one, two)
    assert [each.usage.counted().agents for each in (one, two)] == [{"curl": 3, "ClaudeBot": 2}] * 2
    one.count(1)
    assert (one.total, two.total) == (6, 5), "our own calls count at once"
    await exchange(one, two)
    assert (one.total, two.total) == (6, 6)
    assert one.usage.rows() == [(int(HALF_PAST.timestamp() // 3600), "curl", 4)], "what is stored is our own"


async def test_what_is_older_than_a_day_no_longer_counts(memory):
    at = [HALF_PAST]
    one, two = Instance(memory, at), Instance(memory, at)
    one.count(3)
    await exchange(one, two)
    at[0] += timedelta(hours=WINDOW_H - 1)
    await exchange(one, two)
    assert two.total == 3
    at[0] += timedelta(hours=1)
    assert two.total == 0
    await exchange(one, two)
    assert (one.total, two.total) == (0, 0)


async def test_an_instance_that_starts_again_is_not_counted_twice(memory):
    one, two = Instance(memory), Instance(memory)
    one.count(3)
    two.count(1)
    await exchange(one, two)
    again = Instance(memory, rows=one.usage.rows())
    again.count(1)
    await exchange(again, two)
    assert (again.total, two.total) == (5, 5)


async def test_after_redis_was_emptied_the_sums_are_whole_again(memory, redis_server):
    one, two = Instance(memory), Instance(memory)
    one.count(3)
    two.count(2)
    await exchange(one, two)
    for key in redis_server.command("keys", "usage-of-all:*").split():
        redis_server.command("del", key)
    one.count(1)
    await exchange(one, two)
    assert (one.total, two.total) == (6, 6)


async def test_what_is_no_number_is_left_out_and_without_redis_our_own_count(memory, redis_server):
    one = Instance(memory)
    one.count(2)
    await exchange(one)
    hour = int(HALF_PAST.timestamp() // 3600)
    redis_server.command("hset", f"usage-of-all:usage:{hour}", "ClaudeBot", "many")
    await exchange(one)
    assert one.total == 2

    alone = Instance(LostMemory())
    alone.count(2)
    await exchange(alone)
    assert alone.total == 2
