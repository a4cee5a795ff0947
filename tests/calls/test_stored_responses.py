"""Answers of instances that share a memory are the same bytes until they expire; what cannot be read is not there."""

import socket
import zlib

import anyio
import httpx
import msgspec
import pytest

from tests.calls.instances import instances_on
from tests.calls.parts import RICH
from tests.calls.stored_answers import Disk, Packed
from tests.calls.toy import FIRST, REGISTRY, SECOND
from tests.redis_server import LostMemory
from toolserver.calls.arguments import build_cache_key
from toolserver.calls.response import AnswerFacts, RenderedResponse
from toolserver.calls.response_cache import POPULAR, StoredResponses
from toolserver.calls.shared_answers import (
    CLOCKS_APART_S,
    COMPOSING_S,
    MOST_SHARED_BYTES,
    SharedResponses,
)
from toolserver.core.packing import pack
from toolserver.core.shared_seal import MARK_BYTES, SEAL_OF_THIS_PROCESS, SharedSeal

NUMBER = REGISTRY["number"]
KEY = build_cache_key(NUMBER, NUMBER.arguments())


@pytest.fixture
async def instances(redis_server):
    async with instances_on(redis_server) as started:
        yield started


def share(memory, seal=SEAL_OF_THIS_PROCESS):
    return SharedResponses(memory, seal)


def sealed(packed, name="x"):
    """What an instance of this process writes."""
    return SEAL_OF_THIS_PROCESS.mark(name.encode(), packed) + packed


async def three_of(instances):
    instances.internet.serves(FIRST, {"value": 3})
    instances.internet.serves(SECOND, {"value": 4})
    return [await instances.start(REGISTRY) for _ in range(3)]


async def call(instance, name="number", **caller):
    return (await instance.call(name, **caller)).rendered


async def test_all_give_the_same_bytes_until_they_expire_although_each_would_compose_others(instances):
    three = await three_of(instances)
    for _ in range(3):
        found = []
        for each in three:
            found.append(await call(each))
            instances.clock.advance(4)  # what is composed now would say another time, and "cached"
        assert len({(each.payload, each.etag, each.expires_at, each.generated_at) for each in found}) == 1
        instances.clock.advance(31)
    assert len(instances.internet.asked) == 3


async def test_those_who_compose_at_the_same_moment_give_what_was_offered_first(instances):
    three = await three_of(instances)
    found = []

    async def note(each):
        found.append(await call(each))

    async with anyio.create_task_group() as tasks:
        for each in three:
            tasks.start_soon(note, each)
    assert len({each.payload for each in found}) == 1
    assert len(instances.internet.asked) == 1


async def test_paid_answers_are_the_same_bytes_and_each_call_has_its_own_charge(instances):
    three = await three_of(instances)
    outcomes = [await each.call("premium_report", token=RICH) for each in three]
    assert len({each.rendered.payload for each in outcomes}) == 1
    assert [each.charged for each in outcomes] == [2, 2, 2]


async def test_what_is_composed_ahead_takes_over_at_all_when_the_first_expires(instances):
    one, two, _ = await three_of(instances)
    first = await call(one)
    assert (await call(two)).payload == first.payload
    instances.clock.advance(first.ahead_at - instances.clock.time() + 0.5)
    instances.internet.serves(FIRST, {"value": 5})
    for each in (one, two):
        for _ in range(POPULAR + 2):
            assert (await call(each)).payload == first.payload
        with anyio.fail_after(10):
            while each.answers.table.get(KEY).next is None:  # noqa: ASYNC110 - over Redis
                await anyio.sleep(0.005)
        instances.clock.advance(0.5)
    late = await instances.start(REGISTRY)
    assert (await call(late)).payload == first.payload, "what takes over later is not given before"
    instances.clock.advance(first.expires_at - instances.clock.time())
    found = [await call(each) for each in (one, two, late, await instances.start(REGISTRY))]
    assert len({each.payload for each in found}) == 1
    assert found[0].payload != first.payload


async def test_a_stale_answer_is_not_shared_and_a_good_one_takes_its_place(instances):
    one, two, _ = await three_of(instances)
    await call(one)
    instances.clock.advance(400)
    for url in (FIRST, SECOND):
        instances.internet.serves(url, httpx.Response(500))
    assert (await call(one)).stale
    assert (await call(two)).stale
    instances.clock.advance(40)
    instances.internet.serves(FIRST, {"value": 9})
    good = await call(two)
    assert not good.stale
    assert (await call(one)).payload == good.payload


async def test_a_hit_asks_redis_nothing(instances, monkeypatch):
    one, *_ = await three_of(instances)
    await call(one)

    def refuse(*args, **more):
        raise AssertionError("Redis was asked")

    monkeypatch.setattr(type(one.service.memory), "_add", refuse)
    await call(one)


async def test_without_redis_each_composes_for_itself():
    shared = share(LostMemory())
    mine = RenderedResponse(b"{}", 100.0, 130.0, None)
    assert await shared.find("x", at=100, ttl_s=30) is None
    assert await shared.offer("x", mine, starts_at=100, now=100, ttl_s=30) is mine


def good_answer(**changes):
    facts = {"generated_at": 100.0, "expires_at": 130.0, "oldest_at": None, "no_charge": None, **changes}
    return sealed(zlib.compress(msgspec.json.encode(facts) + b'\n{"theirs":1}'))


async def plant(instances, packed):
    """Put bytes where instances look for an answer: redis-cli takes no zeros."""
    (key,) = instances.keys("answer")
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(instances.server.socket))
        words = [b"HSET", key.encode(), b"packed", packed]
        raw.sendall(b"*4\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
        assert raw.recv(10) == b":0\r\n"


@pytest.mark.parametrize(
    ("packed", "is_taken"),
    [
        (good_answer(), True),
        (good_answer(no_charge="empty_result"), True),
        (sealed(b"no zlib"), False),
        (sealed(zlib.compress(b"no facts")), False),
        (sealed(zlib.compress(b'{"generated_at":"x"}\n{}')), False),
        (
            sealed(zlib.compress(msgspec.json.encode({"generated_at": 1.0, "expires_at": 130.0, "oldest_at": None}))),
            False,
        ),
        (b"", False),
        (good_answer()[MARK_BYTES:], False),  # without a mark
        (good_answer()[:-1], False),
        (bytes([good_answer()[0] ^ 1]) + good_answer()[1:], False),
        (sealed(good_answer()[MARK_BYTES:], name="y"), False),  # of another answer
        (good_answer(expires_at=1e9), False),
        (good_answer(generated_at=1e9), False),
        (good_answer(expires_at=99.0), False),
    ],
)
async def test_an_answer_is_taken_only_if_it_is_one_of_now(instances, packed, is_taken):
    one, *_ = await three_of(instances)
    shared, mine = share(one.service.memory), RenderedResponse(b'{"mine":1}', 100.0, 130.0, None)
    await shared.offer("x", mine, starts_at=100, now=100, ttl_s=30)
    await plant(instances, packed)
    found = await shared.find("x", at=101, ttl_s=30)
    assert (found is not None and found.payload == b'{"theirs":1}') is is_taken
    if not is_taken:
        assert found is None
        assert await shared.offer("x", mine, starts_at=100, now=100, ttl_s=30) is mine
        assert (await shared.find("x", at=101, ttl_s=30)).payload == mine.payload, "it takes the place of the damage"
    else:
        assert (found.generated_at, found.expires_at) == (100, 130)


async def test_an_answer_of_later_stands_beside_that_of_now(instances):
    one, *_ = await three_of(instances)
    shared = share(one.service.memory)
    payloads = {}
    for number, start in enumerate((100.0, 130.0, 160.0)):
        mine = RenderedResponse(b'{"of":%d}' % number, start - 3, start + 30, None)
        await shared.offer("x", mine, starts_at=start, now=max(100.0, start - 3), ttl_s=40)
    for at in (69.9, 100.0, 130.0, 159.9, 160.0, 189.9, 190.0):
        found = await shared.find("x", at=at, ttl_s=40)
        payloads[at] = found and found.payload
    assert payloads == {
        69.9: None,
        100.0: None,  # its place was needed for the one of 160, when it had nearly expired
        130.0: b'{"of":1}',
        159.9: b'{"of":1}',
        160.0: b'{"of":2}',
        189.9: b'{"of":2}',
        190.0: None,
    }


async def test_an_instance_whose_clock_is_late_takes_what_another_one_composed_just_now(instances):
    one, *_ = await three_of(instances)
    shared = share(one.service.memory)
    first, other = (RenderedResponse(b'{"of":%d}' % each, 100.0, 130.0, None) for each in (1, 2))
    await shared.offer("x", first, starts_at=100, now=100, ttl_s=30)
    assert (await shared.find("x", at=99.6, ttl_s=30)).payload == first.payload
    assert (await shared.offer("x", other, starts_at=99.6, now=99.6, ttl_s=30)).payload == first.payload
    after = RenderedResponse(b'{"of":3}', 127.0, 160.0, None)
    await shared.offer("x", after, starts_at=130, now=127, ttl_s=30)
    assert (await shared.find("x", at=129.9, ttl_s=30)).payload == first.payload, "the next one is not given early"


async def test_an_answer_that_would_be_over_before_it_begins_or_is_too_large_is_kept_to_oneself(instances):
    one, *_ = await three_of(instances)
    shared = share(one.service.memory)
    mine = RenderedResponse(b"{}", 100.0, 130.0, None)
    assert await shared.offer("x", mine, starts_at=130, now=100, ttl_s=30) is mine
    large = RenderedResponse(bytes(MOST_SHARED_BYTES + 1), 100.0, 130.0, None)
    assert await shared.offer("x", large, starts_at=100, now=100, ttl_s=30) is large
    assert instances.keys("answer") == []


async def test_why_an_answer_is_free_survives_on_disk():
    disk = Disk()
    stored = StoredResponses("here", disk=disk, pack=Packed)
    empty = RenderedResponse(b"{}", 100.0, 130.0, 90.0, no_charge="empty_result")
    await stored.keep("k", empty, starts_at=100, now=100, ttl_s=30)
    again = await stored.load("k", now=101, ttl_s=30)
    assert (again.payload, AnswerFacts.of(again)) == (b"{}", AnswerFacts.of(empty))
    other = StoredResponses("elsewhere", disk=disk, pack=Packed)
    assert await other.load("k", now=101, ttl_s=30) is None


class Remembered:
    """A shared memory that returns what a test says it has, or takes what it is offered, and keeps the arguments."""

    def __init__(self, found=None):
        self.found, self.given = found, []

    async def run(self, script, keys, given, **more):
        self.given.append(given)
        return given[4] if self.found is None else self.found


async def packed(generated_at, expires_at, payload=b"{}"):
    return sealed(await pack(msgspec.json.encode(AnswerFacts(generated_at, expires_at, None)) + b"\n" + payload))


@pytest.mark.parametrize(
    ("generated_at", "expires_at", "payload", "is_taken"),
    [
        (1030.0, 1060.0, b"{}", True),
        (1030.1, 1060.0, b"{}", False),
        (990.0, 1000.1, b"{}", True),
        (990.0, 1000.0, b"{}", False),
        (990.0, 1080.0, b"{}", True),
        (990.0, 1080.1, b"{}", False),
        (990.0, 1010.0, b"{", False),
    ],
)
async def test_an_answer_of_another_instance_is_taken_if_it_holds_now_and_no_longer_than_it_may(
    generated_at, expires_at, payload, is_taken
):
    memory = Remembered(await packed(generated_at, expires_at, payload))
    found = await share(memory).find("x", at=1000.0, ttl_s=30.0)
    assert (found is not None) is is_taken
    assert memory.given == [[b"1000.000000"]]
    if found is not None:
        assert (found.payload, found.generated_at, found.expires_at) == (payload, generated_at, expires_at)


@pytest.mark.parametrize(("starts_at", "begins"), [(1000.0, b"970.000000"), (1000.5, b"1000.500000")])
async def test_an_answer_of_now_is_also_offered_to_those_whose_clock_is_late(starts_at, begins):
    memory, mine = Remembered(), RenderedResponse(b"{}", 1000.0, 1030.0, None)
    assert await share(memory).offer("x", mine, starts_at=starts_at, now=1000.0, ttl_s=30.0) is mine
    ((start, begin, until, now, _, unreadable),) = memory.given
    assert (start, begin, until, now) == (b"%.6f" % starts_at, begins, b"1030.000000", b"1000.000000")
    assert unreadable == b""


async def test_what_was_offered_before_counts_and_what_cannot_be_read_is_named_once():
    mine, times = RenderedResponse(b"{}", 1000.0, 1030.0, None), {"starts_at": 1000.0, "now": 1000.0, "ttl_s": 30.0}
    earlier = await share(Remembered(await packed(990.0, 1020.0))).offer("x", mine, **times)
    assert (earlier.generated_at, earlier.expires_at) == (990.0, 1020.0)
    damaged = Remembered(b"no answer")
    assert await share(damaged).offer("x", mine, **times) is mine
    assert [given[5] for given in damaged.given] == [b"", b"no answer"]


@pytest.mark.parametrize(("expires_at", "asked"), [(1000.0, 0), (1000.1, 1)])
async def test_an_answer_that_ends_before_it_begins_is_not_offered(expires_at, asked):
    memory, mine = Remembered(), RenderedResponse(b"{}", 990.0, expires_at, None)
    assert await share(memory).offer("x", mine, starts_at=1000.0, now=1000.0, ttl_s=30.0) is mine
    assert len(memory.given) == asked


async def test_an_answer_of_somebody_with_another_key_is_not_there(caplog):
    mine, memory = RenderedResponse(b"{}", 1000.0, 1030.0, None), Remembered()
    await share(memory, SharedSeal(b"of a stranger")).offer("x", mine, starts_at=1000.0, now=1000.0, ttl_s=30.0)
    memory.found = memory.given[0][4]
    assert await share(memory).find("x", at=1000.0, ttl_s=30.0) is None
    assert caplog.messages == ["no instance wrote what is shared as an answer"]


def test_half_a_minute_lies_between_clocks_and_a_minute_is_for_composing():
    assert (CLOCKS_APART_S, COMPOSING_S, MOST_SHARED_BYTES) == (30, 60, 8_388_608)
