"""Redis as a shared memory: one trip for what is asked together, and nobody waits for a server that is away."""

import asyncio
import subprocess
import sys

import anyio
import anyio.lowlevel
import pytest

from tests.redis_server import memory_in
from toolserver.core.shared_memory import Script, SharedMemoryLost
from toolserver.shared.redis import RedisPauses, open_redis

ECHO = Script("return {ARGV[1], #ARGV, false}")
ADD = Script("return redis.call('INCRBY', keys[1], argument)", many=True)
REFUSED = Script("return redis.call('INCRBY', KEYS[1], 'x')")


async def test_a_script_returns_numbers_bytes_and_nothing(redis_server):
    async with memory_in(redis_server) as memory:
        assert await memory.run(ECHO, [], [b"\x00\r\n$1"]) == [b"\x00\r\n$1", 1, None]
        assert await memory.run(ECHO, [], [b"x" * 1_000_000], bulk=True) == [b"x" * 1_000_000, 1, None]


async def test_what_many_ask_at_once_is_answered_to_each_in_its_order(redis_server):
    found = {}
    async with memory_in(redis_server) as memory:

        async def add(number):
            found[number] = await memory.run(ADD, [b"sum"], [b"1"])

        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(add, number)
    assert [found[number] for number in range(300)] == list(range(1, 301))


async def test_scripts_of_one_moment_go_out_together(redis_server):
    redis_server.command("config", "resetstat")
    async with memory_in(redis_server) as memory, anyio.create_task_group() as tasks:
        for _ in range(64):
            tasks.start_soon(memory.run, ADD, [b"sum"], [b"1"])
    calls = [line for line in redis_server.command("info", "commandstats").splitlines() if "eval" in line]
    assert sum(int(line.partition("calls=")[2].partition(",")[0]) for line in calls) <= 4


async def test_two_instances_see_the_same_and_those_of_another_prefix_do_not(redis_server):
    async with memory_in(redis_server, prefix="both:") as one, memory_in(redis_server, prefix="both:") as two:
        assert await one.run(ADD, [b"x"], [b"5"]) + 1 == await two.run(ADD, [b"x"], [b"1"])
        async with memory_in(redis_server) as other:
            assert await other.run(ADD, [b"x"], [b"1"]) == 1


async def test_a_script_that_the_server_has_forgotten_is_sent_again(redis_server):
    async with memory_in(redis_server) as memory:
        for _ in range(2):
            redis_server.command("script", "flush")
            assert await memory.run(ADD, [b"x"], [b"0"]) == 0


async def test_a_refusal_by_the_server_concerns_one_caller_and_is_counted(redis_server):
    async with memory_in(redis_server) as memory:
        await memory.run(ADD, [b"x"], [b"1"])
        with pytest.raises(SharedMemoryLost):
            await memory.run(REFUSED, [b"x"], [])
        assert (memory.is_lost, memory.refused) == (False, 1)
        assert await memory.run(ADD, [b"x"], [b"1"]) == 2


async def test_a_caller_who_gives_up_disturbs_nobody(redis_server):
    async with memory_in(redis_server) as memory:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await memory.run(ADD, [b"x"], [b"1"])
        assert await memory.run(ADD, [b"x"], [b"1"]) >= 1


async def wait_for(condition):
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another program
            await anyio.sleep(0.01)


async def test_a_server_that_is_stopped_is_lost_at_once_and_is_back_by_itself(own_redis, caplog):
    async with memory_in(own_redis, pauses=RedisPauses(retry_s=0.05, look_s=0.05)) as memory:
        await memory.run(ADD, [b"x"], [b"1"])
        own_redis.stop()
        await wait_for(lambda: memory.is_lost)
        with pytest.raises(SharedMemoryLost):
            await memory.run(ADD, [b"x"], [b"1"])
        memory.send(ADD, [b"x"], [b"1"])
        own_redis.start()
        await wait_for(lambda: not memory.is_lost)
        assert await memory.run(ADD, [b"x"], [b"1"]) == 1
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [line.split(":")[0] for line in said] == ["Redis is lost", "Redis is connected"]
    assert memory.lost == 1


async def test_one_caller_waits_for_a_server_that_hangs_and_all_others_are_told_at_once(own_redis):
    async with memory_in(own_redis, deadline_s=0.2, pauses=RedisPauses(retry_s=0.05)) as memory:
        await memory.run(ADD, [b"x"], [b"1"])
        own_redis.hang()
        try:
            with pytest.raises(SharedMemoryLost):
                await memory.run(ADD, [b"x"], [b"1"])
            for _ in range(50):
                with pytest.raises(SharedMemoryLost):
                    memory.run(ADD, [b"x"], [b"1"]).send(None)  # it raises before it waits for anything
        finally:
            own_redis.go_on()
        await wait_for(lambda: not memory.is_lost)
        assert await memory.run(ADD, [b"x"], [b"1"]) >= 2


async def test_a_service_starts_without_its_redis(own_redis, caplog):
    own_redis.stop()
    async with memory_in(own_redis, deadline_s=0.2) as memory:
        assert memory.is_lost
        with pytest.raises(SharedMemoryLost):
            await memory.run(ADD, [b"x"], [b"1"])
    assert [record.message.partition(":")[0] for record in caplog.records] == ["Redis cannot be reached"]


async def test_an_address_that_is_none_is_refused():
    with pytest.raises(ValueError, match="scheme"):
        async with open_redis("http://127.0.0.1", prefix="", deadline_s=1, instances=1):
            pass


def test_the_package_is_named_where_it_is_missing_and_is_loaded_only_when_it_is_used():
    program = """
import sys, asyncio
import toolserver.app, toolserver.shared.redis as module
assert "redis" not in sys.modules
sys.modules["redis"] = sys.modules["redis.asyncio"] = sys.modules["redis.asyncio.connection"] = None
async def main():
    async with module.open_redis("redis://127.0.0.1", prefix="", deadline_s=1, instances=1):
        pass
try:
    asyncio.run(main())
except module.RedisMissing as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("redis_url (TOOLSERVER_REDIS_URL) needs the Redis driver: pip install ")


async def test_it_is_closed_also_while_an_answer_is_on_its_way(redis_server):
    for _ in range(20):
        with anyio.fail_after(10):
            async with memory_in(redis_server) as memory:
                memory.send(ADD, [b"x"], [b"1"])
                memory.send(ECHO, [], [b"x" * 100_000], bulk=True)
                await anyio.lowlevel.checkpoint()


async def test_a_lane_that_was_woken_for_nothing_sends_nothing_and_closes(redis_server, monkeypatch):
    """A transport that is given no bytes to write never gets rid of them, from Python 3.12 on."""
    sent, opened, make = [], [], asyncio.StreamWriter.writelines

    def write(writer, parts):
        opened.append(writer.transport)
        sent.extend(parts)
        make(writer, parts)

    monkeypatch.setattr(asyncio.StreamWriter, "writelines", write)
    async with memory_in(redis_server) as memory:
        await memory.run(ADD, [b"x"], [b"1"])
        memory._quick.wake.set()
        await wait_for(lambda: not memory._quick.wake.is_set())
        assert await memory.run(ADD, [b"x"], [b"1"]) == 2
    assert b"" not in sent
    await wait_for(lambda: all(transport._sock is None for transport in opened))
