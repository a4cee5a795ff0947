"""What instances share of sources: one asks, all take its answer with its times, and nobody waits for one that died."""

import random
import socket
import zlib
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import httpx
import pytest

from tests.calls.instances import instances_on, until_shared
from tests.calls.parts import START, number_source
from toolserver.core.shared_memory import hash_name
from toolserver.core.shared_seal import SharedSeal
from toolserver.settings import ScalingSettings, SourceSettings
from toolserver.upstream import shared_fetch
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.shared_fetch import (
    SHARED_BYTES,
    SharedBody,
    pack_body,
    read_failure,
    read_time,
    unpack_body,
    write_failure,
    write_time,
)
from toolserver.upstream.source import HostGroup, HostRefused, SourceDown, SourceEmpty, SourceError, SourceLimited

SOURCE = number_source(conditional=True)
URL = "https://test.example/Test.number"


@pytest.fixture
async def instances(redis_server):
    async with instances_on(redis_server) as started:
        yield started


def key_of(instances, kind, source=SOURCE, query=None):
    name = hash_name(f"{source.name} {(source.name, source.request_name, query)!r}").decode()
    return f"{instances.prefix}{kind}:{name}"


@asynccontextmanager
async def slow(internet, **answer):
    """The network answers when the block has ended. Yields a list of what was asked."""
    gate = anyio.Event()

    async def wait(request):
        await gate.wait()
        return httpx.Response(**({"status_code": 200, "json": {"value": 7}} | answer))

    internet.serves(URL, wait)
    yield
    gate.set()


async def read(instance, source=SOURCE, query=None, **more):
    return await instance.cache.fresh(source, query, **({"sla_s": 30} | more))


async def until_asked(internet, count=1):
    with anyio.fail_after(10):
        while len(internet.asked) < count:  # noqa: ASYNC110 - by other tasks, over Redis
            await anyio.sleep(0.005)


async def test_instances_that_need_an_answer_at_once_ask_once_and_give_the_same(instances):
    three = [await instances.start() for _ in range(3)]
    found = []

    async def note(instance):
        found.append(await read(instance))

    async with anyio.create_task_group() as tasks:
        async with slow(instances.internet):
            for each in three:
                tasks.start_soon(note, each)
            await until_asked(instances.internet)
            await anyio.sleep(0.1)
    assert len(instances.internet.asked) == 1
    assert {(each.value, each.fetched_at, each.dated) for each in found} == {((7, None), START, None)}
    assert sorted(each.latency_ms is None for each in found) == [False, True, True]


async def test_one_request_a_lifetime_is_made_for_all_and_each_asks_redis_once(instances):
    three = [await instances.start() for _ in range(3)]
    for round in range(4):
        instances.internet.serves(URL, {"value": round})
        for each in three * 3:
            assert (await read(each)).value.value == round
            await anyio.wait_all_tasks_blocked()
        assert len(instances.internet.asked) == round + 1
        instances.clock.advance(31)


async def test_a_hit_asks_redis_nothing(instances, monkeypatch):
    one = await instances.start()
    instances.internet.serves(URL, {"value": 1})
    await read(one)

    def refuse(*args, **more):
        raise AssertionError("Redis was asked")

    monkeypatch.setattr(type(one.service.memory), "_add", refuse)
    assert (await read(one)).value.value == 1


async def test_one_instance_refreshes_ahead_and_the_others_take_that(instances):
    one, two = await instances.start(), await instances.start()
    instances.internet.serves(URL, {"value": 1})
    await read(one)
    await read(two)
    instances.clock.advance(25)
    instances.internet.serves(URL, {"value": 2})
    for each in (one, two):
        assert (await read(each)).value.value == 1
        await until_asked(instances.internet, 2)
        await anyio.sleep(0.1)
    found = [await read(each) for each in (one, two)]
    assert [each.value.value for each in found] == [2, 2]
    assert found[0].fetched_at == found[1].fetched_at
    assert len(instances.internet.asked) == 2


async def test_those_who_wait_learn_why_there_is_no_answer(instances):
    one, two = await instances.start(), await instances.start()
    failures = []

    async def fail(instance):
        with pytest.raises(SourceError) as caught:
            await read(instance)
        failures.append(caught.value)

    async with anyio.create_task_group() as tasks, slow(instances.internet, status_code=429, json={}):
        for each in (one, two):
            tasks.start_soon(fail, each)
        await until_asked(instances.internet)
        await anyio.sleep(0.1)
    assert len(instances.internet.asked) == 1
    assert {(type(each), each.word) for each in failures} == {(SourceLimited, "rate_limited")}


async def test_a_failure_is_no_answer_to_those_who_come_later(instances):
    one, two = await instances.start(), await instances.start()
    instances.internet.serves(URL, {"nothing": 1})
    with pytest.raises(SourceError):
        await read(one)
    instances.internet.serves(URL, {"value": 5})
    assert (await read(two)).value.value == 5


async def test_an_instance_that_died_while_it_asked_is_not_waited_for_longer_than_its_lock(instances):
    one = await instances.start()
    instances.internet.serves(URL, {"value": 5})
    instances.server.command("set", key_of(instances, "lock"), "a" * 16, "px", "300")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, one)
        await anyio.sleep(0.05)
        assert instances.internet.asked == [], "it does not wait for the lock"
    assert len(instances.internet.asked) == 1
    assert shared_fetch.LOCK_S <= 5


async def test_a_lock_stays_for_as_long_as_asking_takes(instances, monkeypatch):
    monkeypatch.setattr(shared_fetch, "LOCK_S", 1.0)
    monkeypatch.setattr(shared_fetch, "RENEW_S", 0.05)  # a busy machine is late, but not twenty times
    one, two = await instances.start(), await instances.start()
    async with anyio.create_task_group() as tasks, slow(instances.internet):
        for each in (one, two):
            tasks.start_soon(read, each)
        await until_asked(instances.internet)
        await anyio.sleep(1.5)
    assert len(instances.internet.asked) == 1


async def test_a_call_that_is_not_patient_does_not_wait_for_the_turn_of_another_instance(instances):
    host = HostGroup("slow", 1, 60, 100, 600)
    source = number_source("Test.paced", hosts=host, timeout_s=100)
    instances.internet.serves("https://test.example/Test.paced", {"value": 1})
    one, two = await instances.start(), await instances.start()
    for each in (one, two):
        await read(each, source)
    instances.clock.advance(31)
    instances.server.command("set", key_of(instances, "lock", source), "a" * 16 + "!", "px", "5000")
    with anyio.fail_after(2):
        kept = await read(two, source, sla_s=100, is_patient=False)
    assert (kept.value.value, kept.failure) == (1, "budget: its turn is some seconds away")


@pytest.mark.parametrize(
    "damage",
    [
        ("hset", "body", "no zlib"),
        ("hset", "validators", "[1"),
        ("hset", "validators", '{"etag":1}'),
        ("hset", "at", "x"),
        ("hset", "at", "1e99"),
        ("hset", "at", str(10**17)),
        ("hset", "at", str(int((START.timestamp() + 3600) * 1e6))),
        ("hdel", "body"),
        ("hdel", "at"),
        ("hdel", "mark"),
    ],
)
async def test_what_cannot_be_read_is_as_if_it_were_not_there(instances, damage):
    one, two = await instances.start(), await instances.start()
    instances.internet.serves(URL, {"value": 1})
    await read(one)
    await until_shared(one)
    verb, *words = damage
    assert instances.server.command(verb, key_of(instances, "sealed"), *words) in ("0", "1")
    with anyio.fail_after(5):
        assert (await read(two)).value.value == 1
    assert len(instances.internet.asked) == 2
    await until_shared(two)
    third = await instances.start()
    assert (await read(third)).value.value == 1
    assert len(instances.internet.asked) == 2, "what was asked then is shared again"


async def test_a_body_larger_than_the_source_may_send_is_not_taken(instances):
    one, two = await instances.start(), await instances.start()
    instances.internet.serves(URL, {"value": 1, "more": 1})
    await read(one)
    await until_shared(one)
    instances.internet.serves(URL, {"value": 1})
    assert (await read(two, replace(SOURCE, max_bytes=12))).value.value == 1
    assert len(instances.internet.asked) == 2


def put(instances, key, **fields):
    """Write to Redis as a stranger who has its password: redis-cli takes no zeros."""
    words = [b"HSET", key.encode(), *(each for name, value in fields.items() for each in (name.encode(), value))]
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(instances.server.socket))
        raw.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(each), each) for each in words))
        assert raw.recv(10).startswith(b":")


def take(instances, key):
    """The fields of a body in Redis."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(instances.server.socket))
        raw.sendall(b"*2\r\n$7\r\nHGETALL\r\n$%d\r\n%b\r\n" % (len(key), key.encode()))
        parts = raw.recv(65536).split(b"\r\n", 1)[1]
    words = []
    while parts:
        size, _, parts = parts.partition(b"\r\n")
        words.append(parts[: int(size[1:])])
        parts = parts[int(size[1:]) + 2 :]
    return {name.decode(): value for name, value in zip(words[::2], words[1::2], strict=True)}


OTHER = number_source("Other.number", conditional=True)
OTHER_URL = "https://test.example/Other.number"


@pytest.mark.parametrize("kind", ["made up", "changed", "newer", "of another source", "of another service"])
async def test_a_body_that_no_instance_wrote_under_this_name_is_not_used(instances, kind):
    one, two = await instances.start(), await instances.start()
    instances.internet.serves(URL, {"value": 1})
    instances.internet.serves(OTHER_URL, {"value": 9})
    await read(one)
    await read(one, OTHER)
    await until_shared(one)
    key, mark = key_of(instances, "sealed"), take(instances, key_of(instances, "sealed"))["mark"]
    at, body = write_time(START), zlib.compress(b'{"value":9}', 1)
    stranger = SharedSeal(b"of a stranger").mark(key.removeprefix(instances.prefix).encode(), at, b"{}", body)
    forged = {
        "made up": {"at": at, "validators": b"{}", "body": body, "mark": b""},
        "changed": {"body": body},
        "newer": {"at": write_time(START + timedelta(seconds=20))},
        "of another source": take(instances, key_of(instances, "sealed", OTHER)),
        "of another service": {"at": at, "validators": b"{}", "body": body, "mark": stranger},
    }
    put(instances, key, **forged[kind])
    assert (await read(two)).value.value == 1
    assert len(instances.internet.asked) == 3, "it asked for itself"
    await until_shared(two)
    assert take(instances, key)["mark"] == mark, "what it got stands there again"


async def test_an_older_body_that_was_put_back_is_not_confirmed(instances):
    one, two = await instances.start(), await instances.start()
    version = 1

    async def serve(request):
        if request.headers.get("if-none-match") == f'"v{version}"':
            return httpx.Response(304)
        return httpx.Response(200, json={"value": version}, headers={"etag": f'"v{version}"'})

    instances.internet.serves(URL, serve)
    await read(one)
    await until_shared(one)
    old = take(instances, key_of(instances, "sealed"))
    instances.clock.advance(31)
    version = 2
    await read(one)
    await until_shared(one)
    put(instances, key_of(instances, "sealed"), **old)
    instances.clock.advance(31)
    assert (await read(one)).value.value == 2
    await until_shared(one)
    assert "if-none-match" not in instances.internet.asked[-1].headers, "the whole was asked for"
    found = await read(two)
    assert (found.value.value, found.fetched_at, len(instances.internet.asked)) == (2, instances.clock.now(), 3)


async def test_an_answer_with_one_of_our_keys_in_it_is_not_put_there(instances):
    secret = "k1-0123456789abcdef"
    keyed = {"sources": SourceSettings(keys={"FRED_API_KEY": secret})}
    one, two = await instances.start(**keyed), await instances.start(**keyed)
    instances.internet.serves(URL, {"value": 1, "echo": secret})
    await read(one)
    await read(two)
    await until_shared(two)
    assert len(instances.internet.asked) == 2
    assert instances.server.command("exists", key_of(instances, "sealed")) == "0"
    assert instances.server.command("exists", key_of(instances, "lock")) == "0"


async def test_not_modified_is_news_to_all_and_after_a_flush_the_whole_is_asked_for(instances):
    one, two = await instances.start(), await instances.start()

    async def serve(request):
        if request.headers.get("if-none-match") == '"v1"':
            return httpx.Response(304)
        return httpx.Response(200, json={"value": 1}, headers={"etag": '"v1"'})

    instances.internet.serves(URL, serve)
    for each in (one, two):
        await read(each)
    instances.clock.advance(31)
    found = [await read(each) for each in (one, two)]
    assert [each.fetched_at for each in found] == [instances.clock.now()] * 2
    assert len(instances.internet.asked) == 2
    instances.clock.advance(31)
    await until_shared(one)
    instances.server.command("del", key_of(instances, "sealed"))
    for each in (one, two):
        assert (await read(each)).fetched_at == instances.clock.now()
    assert len(instances.internet.asked) == 3
    assert "if-none-match" not in instances.internet.asked[-1].headers


async def test_a_new_instance_has_the_last_good_answer_when_nobody_gets_a_newer_one(instances):
    one = await instances.start()
    instances.internet.serves(URL, {"value": 1})
    await read(one)
    instances.clock.advance(300)
    instances.internet.serves(URL, httpx.ConnectError("down"))
    new = await instances.start()
    with pytest.raises(SourceDown):
        await read(new)
    kept = await new.cache.kept(SOURCE, None)
    assert (kept.value.value, kept.fetched_at) == (1, START)
    await until_shared(one)
    kept_s = int(instances.server.command("ttl", key_of(instances, "sealed")))
    assert 3600 < kept_s <= 3630


async def test_what_a_caller_chose_is_shared_while_it_is_fresh_and_its_key_does_not_say_what_it_was(instances):
    chosen = number_source(user_input=True)
    one, two = await instances.start(), await instances.start()
    instances.internet.serves(URL, {"value": 1})
    for each in (one, two):
        await read(each, chosen, "192.0.2.7", is_chosen=True)
    await until_shared(one)
    assert len(instances.internet.asked) == 1
    assert 0 < int(instances.server.command("ttl", key_of(instances, "sealed", chosen, "192.0.2.7"))) <= 30
    assert "192.0.2.7" not in instances.server.command("keys", "*")


async def test_without_redis_each_asks_for_itself_and_takes_the_same_again_when_it_is_back(instances, own_redis):
    instances.server = own_redis
    settings = {"scaling": ScalingSettings(redis_prefix="lost:", redis_deadline_s=0.2)}
    instances.prefix = "lost:"
    one, two = await instances.start(**settings), await instances.start(**settings)
    instances.internet.serves(URL, {"value": 1})
    own_redis.hang()
    for each in (one, two):
        assert (await read(each)).value.value == 1
    assert len(instances.internet.asked) == 2
    own_redis.go_on()
    with anyio.fail_after(20):
        while one.service.memory.is_lost or two.service.memory.is_lost:  # noqa: ASYNC110 - another program
            await anyio.sleep(0.05)
    instances.clock.advance(31)
    for each in (one, two):
        await read(each)
    assert len(instances.internet.asked) == 3


SECRET = "k1-0123456789abcdef"
REMOVER = SecretRemover({"FRED_API_KEY": SECRET})


@pytest.mark.parametrize("body", [b"", b"{}", b"ab" * 100_000])
async def test_a_body_is_what_it_was(body):
    packed = await pack_body(body, {"etag": "x"}, REMOVER)
    found = await unpack_body(number_source(), SharedBody(write_time(START), *packed, b""))
    assert (found.body, found.fetched_at, found.validators) == (body, START, {"etag": "x"})


async def test_a_body_with_a_key_in_it_or_in_its_validators_is_not_written_down():
    assert await pack_body(b"echo " + SECRET.encode(), {}, REMOVER) is None
    assert await pack_body(b"", {"etag": SECRET}, REMOVER) is None


async def test_a_body_that_stays_too_large_is_not_written_down():
    assert await pack_body(b"a" * (SHARED_BYTES + 1), {}, REMOVER) is not None
    assert await pack_body(random.Random(1).randbytes(SHARED_BYTES + 1), {}, REMOVER) is None


async def test_nothing_that_is_missing_or_damaged_is_a_body():
    named, packed = await pack_body(b"{}", {}, REMOVER)
    at = write_time(START)
    for found in (
        (b"x", named, packed),
        (at, b"[", packed),
        (at, b'{"a":1}', packed),
        (at, named, b"no"),
        (at, named, packed[:-1]),
    ):
        assert await unpack_body(number_source(), SharedBody(*found, b"")) is None


def test_an_error_is_the_same_after_it_was_written_down():

    remover = SecretRemover({"FRED_API_KEY": "k1-0123456789abcdef"})
    for error in (
        SourceEmpty("3 items"),
        RequestWithheld("its turn", word="rate_limited", retry_after_s=7.5),
        SourceDown("with k1-0123456789abcdef in it", word="http_500"),
    ):
        again = read_failure(write_failure(error, remover))
        assert (type(again), again.word, again.retry_after_s) == (type(error), error.word, error.retry_after_s)
        assert "k1-" not in str(again)
    assert read_failure(write_failure(HostRefused("403"), remover)).word == "refused"
    assert isinstance(read_failure(b"\xff"), SourceDown)


def test_times_are_exact():

    at = datetime(2027, 1, 15, 8, 0, 0, 123457, tzinfo=UTC)
    assert read_time(write_time(at)) == at
    assert read_time(None) is read_time(b"x") is read_time(b"9" * 30) is None


def test_a_time_is_written_as_microseconds_since_1970():
    assert write_time(datetime(1970, 1, 2, 0, 0, 0, 1, tzinfo=UTC)) == b"86400000001"
    assert read_time(b"0") == datetime(1970, 1, 1, tzinfo=UTC)


async def test_a_body_that_is_as_large_as_the_source_may_send_is_taken_and_no_larger_one():
    source = number_source(max_bytes=100)
    for size, is_taken in ((100, True), (101, False)):
        named, packed = await pack_body(b"a" * size, {}, REMOVER)
        assert (await unpack_body(source, SharedBody(write_time(START), named, packed, b"")) is not None) is is_taken


def test_of_a_long_detail_a_hundred_characters_are_written_down():
    assert str(read_failure(write_failure(SourceDown("x" * 500), REMOVER))) == "x" * 100
    assert SHARED_BYTES == 4_194_304
