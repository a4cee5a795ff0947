"""Counts of calls are those of all instances, also after a restart of one and after Redis was emptied."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.redis_server import memory_in
from toolserver.core.shared_memory import SharedMemoryLost
from toolserver.core.shared_usage import SharedUsage
from toolserver.core.usage_stats import WINDOW_H, Usage

START = datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
AGENTS = ("curl/8", "ClaudeBot/1")


class Instance:
    """One that counts, on the memory of all."""

    def __init__(self, memory, at=None, rows=()):
        self.at = at or [START]
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
    assert one.usage.rows() == [(int(START.timestamp() // 3600), "curl", 4)], "what is stored is our own"


async def test_what_is_older_than_a_day_no_longer_counts(memory):
    at = [START]
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
    hour = int(START.timestamp() // 3600)
    redis_server.command("hset", f"usage-of-all:usage:{hour}", "ClaudeBot", "many")
    await exchange(one)
    assert one.total == 2

    class Gone:
        async def run(self, *args, **more):
            raise SharedMemoryLost

    alone = Instance(Gone())
    alone.count(2)
    await exchange(alone)
    assert alone.total == 2
