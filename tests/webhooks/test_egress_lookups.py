"""Lookups of names: none delays another, and no answer leads inside."""

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.waiting_room import WaitingRoom
from toolserver.webhooks.egress import (
    DNS_WAITS,
    NEW_THREADS,
    DaemonThreads,
    DnsLane,
    EgressGuard,
    GuardedResolver,
    NameUnknown,
    TargetRefused,
)


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 1, tzinfo=UTC))


@pytest.fixture
def lane_of(clock):
    lanes = []

    def open_lane(lookup, **deadline):
        lanes.append(DnsLane(EgressGuard(), clock, lookup=lookup, **deadline))
        return lanes[-1]

    yield open_lane
    for lane in lanes:
        lane.close()


async def test_a_name_is_looked_up_once_for_half_a_minute(lane_of, clock):
    lookups = []
    lane = lane_of(lambda host: lookups.append(host) or ["1.1.1.1"])
    assert await lane.resolve("a.example") == ["1.1.1.1"]
    assert await lane.resolve("a.example") == ["1.1.1.1"]
    clock.advance(31)
    await lane.resolve("a.example")
    assert lookups == ["a.example"] * 2


async def test_a_name_with_one_private_address_is_refused(lane_of):
    lane = lane_of(lambda host: ["1.1.1.1", "127.0.0.1"])
    with pytest.raises(TargetRefused):
        await lane.resolve("a.example")
    with pytest.raises(TargetRefused):
        await lane.resolve("a.example")


async def test_a_second_answer_that_leads_inside_is_refused(lane_of, clock):
    answers = [["1.1.1.1"], ["169.254.169.254"]]
    lane = lane_of(lambda host: answers.pop(0))
    await lane.resolve("a.example")
    clock.advance(31)
    with pytest.raises(TargetRefused):
        await lane.resolve("a.example")


async def test_a_name_without_an_address_is_unknown(lane_of):
    def fail(host):
        raise OSError(-2, "Name or service not known")

    with pytest.raises(NameUnknown):
        await lane_of(fail).resolve("a.example")
    with pytest.raises(NameUnknown):
        await lane_of(lambda host: []).resolve("a.example")


async def test_names_that_nobody_answers_for_delay_nobody_else(lane_of):
    release = threading.Event()

    def lookup(host):
        if host.startswith("dead"):
            release.wait()
        return ["1.1.1.1"]

    lane = lane_of(lookup, deadline_s=0.5)
    try:
        dead = [asyncio.create_task(lane.resolve(f"dead{n}.example")) for n in range(12)]
        async with asyncio.timeout(60):
            good = await asyncio.gather(*(lane.resolve(f"good{n}.example") for n in range(50)))
        assert good == [["1.1.1.1"]] * 50
        ended = await asyncio.gather(*dead, return_exceptions=True)
        assert {type(end) for end in ended} == {NameUnknown}
    finally:
        release.set()


async def test_a_name_that_was_not_answered_in_time_moves_to_the_slow_pool_and_is_asked_once_at_a_time(lane_of, clock):
    release, ended, threads = threading.Event(), threading.Event(), []

    def lookup(host):
        threads.append(threading.current_thread().name)
        release.wait(20)
        ended.set()
        return ["1.1.1.1"]

    lane = lane_of(lookup, deadline_s=0.02)
    for _ in range(3):
        with pytest.raises(NameUnknown):
            await lane.resolve("dead.example")
    assert len(threads) == 1
    release.set()
    await asyncio.to_thread(ended.wait)
    await asyncio.sleep(0.05)  # until what was found is handed over
    lane.room = WaitingRoom("dns", replace(DNS_WAITS, longest_s=20.0))  # a thread of a busy machine may begin late
    clock.advance(31)
    assert await lane.resolve("dead.example") == ["1.1.1.1"]
    clock.advance(31)
    assert await lane.resolve("dead.example") == ["1.1.1.1"]
    assert [name.rpartition("-")[0] for name in threads] == ["webhook-dns-new", "webhook-dns-slow", "webhook-dns"]


async def test_aiohttp_is_told_each_address_with_its_family(lane_of):
    resolver = GuardedResolver(lane_of(lambda host: ["1.1.1.1", "2606:4700:4700::1111"]))
    addresses = await resolver.resolve("a.example", 443)
    assert [(f["host"], f["port"], f["family"].name) for f in addresses] == [
        ("1.1.1.1", 443, "AF_INET"),
        ("2606:4700:4700::1111", 443, "AF_INET6"),
    ]
    await resolver.close()


@proves("waits.dns")
async def test_however_many_new_names_hang_those_that_were_answered_before_are_looked_up_at_once(lane_of, clock):
    release, threads = threading.Event(), []

    def lookup(host):
        if host.startswith("dead"):
            release.wait()
        threads.append(threading.current_thread().name.rpartition("-")[0])
        return ["1.1.1.1"]

    lane = lane_of(lookup, deadline_s=1.5)
    try:
        good = [f"good{n}.example" for n in range(20)]
        await asyncio.gather(*(lane.resolve(host) for host in good))
        clock.advance(31)
        hosts = [f"dead{n}.example" for n in range(NEW_THREADS + 8)]
        dead = [asyncio.create_task(lane.resolve(host)) for host in hosts]
        await asyncio.sleep(0)
        await asyncio.gather(*(lane.resolve(host) for host in good))
        assert not any(each.done() for each in dead), "those that hang are waited for by nobody else"
        await asyncio.gather(*dead, return_exceptions=True)
    finally:
        release.set()
    while len(threads) < 2 * len(good) + NEW_THREADS:  # noqa: ASYNC110 - threads tell this loop nothing
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert len(threads) == 2 * len(good) + NEW_THREADS, "nobody waits any more for those that waited for a thread"
    clock.advance(31)
    threads.clear()
    await asyncio.gather(*(lane.resolve(host) for host in hosts))
    assert threads.count("webhook-dns-slow") == NEW_THREADS, "those that waited for a thread are not suspected"


async def test_an_answer_that_came_too_late_is_kept_for_the_next_attempt(lane_of):
    release, lookups = threading.Event(), []

    def lookup(host):
        lookups.append(host)
        release.wait(20)
        return ["1.1.1.1"]

    lane = lane_of(lookup, deadline_s=0.02)
    with pytest.raises(NameUnknown):
        await lane.resolve("late.example")
    release.set()
    await asyncio.sleep(0.05)
    assert await lane.resolve("late.example") == ["1.1.1.1"]
    assert lookups == ["late.example"]


async def test_calls_run_beside_each_other_up_to_the_bound():
    pool, gate, inside, three = DaemonThreads(3, "t"), threading.Event(), [], threading.Barrier(4, timeout=5)

    def work(n):
        inside.append(n)
        if n < 3:
            three.wait()
        gate.wait(5)
        return n

    futures = [pool.run(work, n) for n in range(5)]
    await asyncio.to_thread(three.wait)
    assert sorted(inside) == [0, 1, 2]
    gate.set()
    assert await asyncio.gather(*futures) == [0, 1, 2, 3, 4]
    pool.close()


async def test_what_a_call_raises_arrives():
    pool = DaemonThreads(1, "t")
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 / 0)
    assert await pool.run(lambda: 2) == 2
    pool.close()


async def test_a_call_that_nobody_waits_for_any_more_ends_quietly():
    pool, gate = DaemonThreads(1, "t"), threading.Event()
    abandoned = pool.run(gate.wait, 5)
    abandoned.cancel()
    gate.set()
    assert await pool.run(lambda: 3) == 3
    pool.close()


def test_a_thread_that_hangs_does_not_keep_the_process():
    async def hang():
        pool = DaemonThreads(1, "hanging")
        pool.run(threading.Event().wait)
        await asyncio.sleep(0)

    asyncio.run(hang())
    hanging = [thread for thread in threading.enumerate() if thread.name.startswith("hanging")]
    assert hanging
    assert all(thread.daemon for thread in hanging)
