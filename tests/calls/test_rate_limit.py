"""Limits: as strict as they say, the same for everybody, in bounded memory, and for the right client."""

import tracemalloc
from contextlib import nullcontext
from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.parts import START, engine, number_source
from tests.calls.test_quotas import Clock
from tests.calls.toy import REGISTRY
from tests.requirements import proves
from tests.size import sized
from toolserver.calls.rate_limit import WIDER, Bucket, DistinctValueLimit, FreeLimits, PersonalLimits, Quota
from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ENTRIES
from toolserver.core.caller import Addresses
from toolserver.errors import RateLimited
from toolserver.upstream.cache import ENTRIES_FROM_USERS, ROOM_FROM_USERS
from toolserver.upstream.fetcher import Fetched
from toolserver.upstream.source import SourceAnswer

DAY = 86_400


def limits(clock: Clock, **more: int) -> FreeLimits:
    return FreeLimits(daily=100_000, spacing_s=30, monotonic=clock, **more)


def test_the_call_after_the_hundred_thousandth_is_one_too_many():
    clock = Clock()
    free = limits(clock)
    for number in range(100_000):
        limit_states = free.take("192.0.2.1", f"endpoint {number}")
        clock.now += 1e-7
    assert [s.remaining for s in limit_states] == [0, 0]

    with pytest.raises(RateLimited) as refused:
        free.take("192.0.2.1", "another endpoint")
    assert refused.value.extra == {"retry_after_seconds": 1, "limit": "daily"}
    assert refused.value.headers["RateLimit"].startswith('"daily";r=0;t=')
    for _ in range(10):
        with pytest.raises(RateLimited) as again:
            free.take("192.0.2.1", "another endpoint")
        assert again.value.headers == refused.value.headers, "refused calls do not make the next one wait longer"
    assert free.spacing.look("192.0.2.1 another endpoint").remaining == 1  # nothing was counted
    assert free.take("192.0.2.2", "another endpoint")[0].remaining == 99_999

    clock.now += DAY / 100_000
    free.take("192.0.2.1", "another endpoint")
    with pytest.raises(RateLimited):
        free.take("192.0.2.1", "one more")
    clock.now += DAY
    assert free.take("192.0.2.1", "one more")[0].remaining == 99_999


def test_calls_that_are_refused_do_not_make_the_next_one_wait_longer():
    clock = Clock()
    bucket = Bucket(Quota("single", 2, 60), monotonic=clock)
    assert [bucket.take("a").remaining for _ in range(2)] == [1, 0]
    assert {bucket.take("a") for _ in range(10)} == {bucket.look("a")}
    clock.now += 30
    assert [bucket.take("a").allowed for _ in range(2)] == [True, False]


def test_a_call_that_is_too_soon_costs_nothing_of_the_day():
    clock = Clock()
    free = limits(clock)
    free.take("a", "gas")
    for _ in range(50):
        with pytest.raises(RateLimited) as refused:
            free.take("a", "gas")
    assert refused.value.extra == {"retry_after_seconds": 30, "limit": "spacing"}
    assert free.take("a", "forex")[0].remaining == 99_998
    clock.now += 30
    assert free.take("a", "gas")[0].remaining == 99_999  # 34 have grown back


def test_memory_stands_still_once_the_bound_is_reached():
    free = limits(Clock(), keys=2000)
    distinct = Quota("distinct ip", 20, 3600)

    def strangers(first: int) -> int:
        for number in range(first, first + 5000):
            free.take(f"client {number}", "gas")
            free.distinct.take(f"client {number}", distinct, "192.0.2.1")
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        full = strangers(10_000)
        assert strangers(20_000) < 1.05 * full
    finally:
        tracemalloc.stop()
    assert (len(free.daily), len(free.spacing), len(free.distinct)) == (2000, 2000, 2000)


def test_values_that_count_no_more_are_not_kept():
    clock = Clock()
    distinct, quota = DistinctValueLimit(monotonic=clock), Quota("distinct x", 1, 30)
    for number in range(1000):
        distinct.take(f"client {number}", quota, "value")
        clock.now += 1
    assert len(distinct) <= 30
    with pytest.raises(RateLimited):
        distinct.check("client 999", quota, "another")
    distinct.check("client 0", quota, "another")


def test_a_million_places_leave_no_more_behind_than_the_bound():
    """Answers and source answers are kept for so many coordinates and no more, whoever asks for them."""

    async def ask() -> None:
        source = number_source(user_input=True)
        async with engine(REGISTRY) as e:
            rendered = RenderedResponse(b"{}", 0, 1e12, None)
            fetched = Fetched(SourceAnswer(1, START, None, None), b"1")
            table = e.cache._table(source)
            for number in range(sized(100_000, fast=20_000, long=1_000_000)):
                place = (number % 36_000 / 100 - 180, number // 36_000 / 100)
                e.answers.table.keep(("weather", *place), rendered)
                if number % 10 == 0:
                    e.cache._keep(source, (source.name, "request", place), fetched)
            assert len(e.answers.table) == ENTRIES
            assert len(table) == ENTRIES_FROM_USERS
            assert e.answers.find(("weather", *place), 0) is rendered

    anyio.run(ask)


async def test_of_large_answers_from_users_fewer_are_kept():
    source = number_source(user_input=True)
    async with engine(REGISTRY) as e:
        large = Fetched(SourceAnswer(1, START, None, None), bytes(10 * ROOM_FROM_USERS))
        unchanged = replace(large, body=None)
        for number in range(1000):
            e.cache._keep(source, number, large)
            e.cache._keep(source, number, unchanged)
        table = e.cache._table(source)
        assert len(table) == ENTRIES_FROM_USERS // 10
        e.cache._keep(source, "huge", replace(large, body=bytes(2 * ROOM_FROM_USERS * ENTRIES_FROM_USERS)))
        assert list(table) == ["huge"]


async def test_a_thousand_places_asked_for_one_by_one_stay_within_the_bounds():
    source = number_source(user_input=True)
    async with engine(REGISTRY) as e:
        e.internet.serves("https://test.example/", {"value": 1})
        for number in range(1200):
            await e.cache.fresh(source, number, sla_s=30)
        for add in range(101):
            await e.call("number", {"add": add})
        e.internet.asked.clear()
        assert len(e.cache._from_users[source.name]) == ENTRIES_FROM_USERS
        assert len(e.cache._answers) == 1  # callers' questions push out nothing of ours
        assert (e.cache._single_flight._runs, e.answers._flights._runs) == ({}, {})
        await e.cache.fresh(source, 1199, sla_s=30)
        assert e.internet.asked == []


def ask(distinct: DistinctValueLimit, client: str, quota: Quota, value: str) -> None:
    """A call with a value: it is counted when it is allowed. Raises RateLimited."""
    distinct.check(client, quota, value)
    distinct.take(client, quota, value)


@proves("limits.distinct")
def test_so_many_different_values_and_those_as_often_as_one_likes():
    clock = Clock()
    distinct, quota = DistinctValueLimit(monotonic=clock), Quota("distinct ip", 20, 3600)
    for number in range(20):
        for _ in range(3):
            ask(distinct, "a", quota, f"192.0.2.{number}")
        clock.now += 60
    with pytest.raises(RateLimited) as refused:
        ask(distinct, "a", quota, "192.0.2.20")
    assert refused.value.extra == {"retry_after_seconds": 3600 - 20 * 60, "limit": "distinct ip"}
    ask(distinct, "a", quota, "192.0.2.7")
    ask(distinct, "b", quota, "192.0.2.20")
    clock.now += 3600 - 20 * 60
    ask(distinct, "a", quota, "192.0.2.20")
    with pytest.raises(RateLimited):
        ask(distinct, "a", quota, "192.0.2.21")


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 30)), max_size=60), st.integers(1, 5))
def test_different_values_are_counted_as_one_would(calls, most):
    clock, seen = Clock(), {}
    distinct, quota = DistinctValueLimit(monotonic=clock), Quota("x", most, 60)
    for value, step in calls:
        clock.now += step
        seen = {v: at for v, at in seen.items() if at > clock.now - 60}
        if value in seen or len(seen) < most:
            seen.setdefault(value, clock.now)
            ask(distinct, "a", quota, str(value))
        else:
            with pytest.raises(RateLimited):
                ask(distinct, "a", quota, str(value))


def test_different_values_of_many_clients_are_kept_for_so_many_clients():
    distinct, quota = DistinctValueLimit(monotonic=Clock(), clients=1000), Quota("x", 2, 60)
    for number in range(10_000):
        ask(distinct, f"client {number}", quota, "192.0.2.1")
    for number in range(50):
        with pytest.raises(RateLimited) if number >= 2 else nullcontext():
            ask(distinct, "greedy", quota, str(number))
    assert len(distinct) == 1000
    assert len(distinct._seen["greedy x"].at) == 2  # what was refused is not kept


def test_a_call_that_another_limit_refuses_uses_up_no_value_of_an_argument():
    clock = Clock()
    free, quota = limits(clock), Quota("distinct ip", 2, 3600)
    free.take("a", "lookup", distinct=(quota, "192.0.2.1"))
    for number in range(5):
        with pytest.raises(RateLimited) as refused:
            free.take("a", "lookup", distinct=(quota, f"192.0.2.{number}"))
        assert refused.value.extra["limit"] == "spacing"
    assert free.daily.look("a").remaining == 99_999
    clock.now += 30
    free.take("a", "lookup", distinct=(quota, "192.0.2.2"))
    clock.now += 30
    with pytest.raises(RateLimited) as refused:
        free.take("a", "lookup", distinct=(quota, "192.0.2.3"))
    assert refused.value.extra["limit"] == "distinct ip"
    assert free.spacing.look("a lookup").allowed


def test_a_check_counts_nothing():
    personal = PersonalLimits(per_minute=3, monotonic=Clock())
    for _ in range(10):
        personal.check("a", "try", [(1, 3600)])
    personal.take("a", "try", [(1, 3600)])
    with pytest.raises(RateLimited, match="At most 1 calls per 3600 s"):
        personal.check("a", "try", [(1, 3600)])
    PersonalLimits(per_minute=1, monotonic=Clock(), enabled=False).check("a", "try", [(1, 3600)])


@pytest.mark.parametrize("name", ["day", "spacing", "personal", "own quota", "different values"])
def test_every_limit_fills_up_again_when_time_passes(name):
    clock = Clock()
    free = FreeLimits(daily=1, spacing_s=30, monotonic=clock)
    personal = PersonalLimits(per_minute=1, monotonic=clock)
    quota = Quota("distinct ip", 1, 3600)
    value = iter(range(100))
    wait_s, take = {
        "day": (DAY, lambda: free.take("a", "gas", spaced=False)),
        "spacing": (30, lambda: limits_of_spacing.take("a", "gas")),
        "personal": (60, lambda: personal.take("a", "balance")),
        "own quota": (3600, lambda: personal.take("a", "try", [(1, 3600)])),
        "different values": (3600, lambda: ask(free.distinct, "a", quota, str(next(value)))),
    }[name]
    limits_of_spacing = limits(clock)
    for _ in range(3):
        take()
        clock.now += 0.99 * wait_s
        with pytest.raises(RateLimited):
            take()
        clock.now += 0.01 * wait_s


def test_account_tools_share_a_limit_and_have_their_own():
    clock = Clock()
    personal = PersonalLimits(per_minute=3, monotonic=clock)
    personal.take("a", "try", [(1, 3600)])
    with pytest.raises(RateLimited) as own:
        personal.take("a", "try", [(1, 3600)])
    assert own.value.extra == {"retry_after_seconds": 3600, "limit": "try"}
    personal.take("a", "balance")
    personal.take("a", "balance")
    with pytest.raises(RateLimited) as shared:
        personal.take("a", "balance")
    assert shared.value.extra["limit"] == "personal"
    personal.take("b", "balance")


# --- who is asking ---

PROXIES = ("10.0.0.0/8", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),  # it is no proxy of ours
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "203.0.113.5, 198.51.100.9", "198.51.100.9"),  # the first one is the client's own word
        ("10.0.0.1", "203.0.113.5, 198.51.100.9, 10.9.9.9", "198.51.100.9"),
        ("10.0.0.1", "10.1.1.1, 10.2.2.2", "10.1.1.1"),  # a client inside
        ("fd00::1", " 2001:db8:7:8:aaaa::1 ", "2001:db8:7:8::/64"),
        ("10.0.0.1", "::ffff:198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "localhost", "unknown"),
        ("10.0.0.1", "", "unknown"),
        ("unix socket", "198.51.100.9", "unknown"),
    ],
)
def test_a_client_is_who_the_last_of_our_proxies_saw(peer, forwarded, client):
    assert Addresses(PROXIES).client(peer, forwarded) == client


def test_without_proxies_of_ours_the_header_says_nothing():
    assert Addresses(()).client("127.0.0.1", "198.51.100.9") == "127.0.0.1"


@given(st.lists(st.one_of(st.ip_addresses().map(str), st.text(max_size=20)), max_size=5))
def test_whatever_a_client_puts_into_the_header_it_stays_who_it_is(told):
    forwarded = ", ".join([*(word.replace(",", "") for word in told), "198.51.100.9"])
    assert Addresses(PROXIES).client("10.0.0.1", forwarded) == "198.51.100.9"


@given(st.ip_addresses(v=6), st.ip_addresses(v=6))
def test_addresses_of_one_network_of_64_bits_are_one_client(one, other):
    addresses = Addresses(())
    mapped = one.ipv4_mapped is not None or other.ipv4_mapped is not None
    same = int(one) >> 64 == int(other) >> 64
    assert mapped or (addresses.client(str(one)) == addresses.client(str(other))) is same
    beside = type(one)(int(one) ^ 1)
    assert one.ipv4_mapped is not None or addresses.client(str(one)) == addresses.client(str(beside))


async def test_a_network_shares_its_budget_whatever_its_addresses_and_headers():
    addresses = Addresses(())
    async with engine(REGISTRY, limits=True) as e:
        e.internet.serves("https://test.example/", {"value": 1})
        mine = [addresses.client(f"2001:db8:1:2::{host:x}", f"198.51.100.{host}") for host in range(5)]
        await e.call("number", client=mine[0], limited=True)
        for client in mine:
            with pytest.raises(RateLimited):
                await e.call("number", client=client, limited=True)
        await e.call("number", client=addresses.client("2001:db8:1:3::1"), limited=True)


def client_of(subnet: int, site: int = 0) -> str:
    return f"2001:db8:{site:x}:{subnet:x}::/64"


def test_the_clients_of_a_48_share_a_larger_budget_of_distinct_values():
    clock = Clock()
    distinct, quota = DistinctValueLimit(monotonic=clock), Quota("distinct ip", 2, 3600)
    for subnet in range(WIDER):
        for number in range(2):
            ask(distinct, client_of(subnet), quota, f"{subnet} {number}")
    with pytest.raises(RateLimited) as refused:
        ask(distinct, client_of(WIDER), quota, "one more")
    assert refused.value.extra["limit"] == "distinct ip of a /48"
    ask(distinct, client_of(WIDER), quota, "3 1")  # somebody has asked for that already
    ask(distinct, client_of(0, site=1), quota, "one more")
    clock.now += 3600
    ask(distinct, client_of(WIDER), quota, "one more")


@proves("limits.network")
@pytest.mark.parametrize(("limit", "calls"), [("spacing of a /48", WIDER), ("daily of a /48", WIDER * 3)])
def test_the_clients_of_a_48_share_larger_limits_of_the_free_tier(limit, calls):
    free = FreeLimits(daily=3, spacing_s=30, monotonic=Clock())
    spaced = limit.startswith("spacing")
    for number in range(calls):
        free.take(client_of(number), "gas" if spaced else f"endpoint {number}")
    with pytest.raises(RateLimited) as refused:
        free.take(client_of(calls), "gas" if spaced else "another")
    assert refused.value.extra["limit"] == limit
    free.take(client_of(calls, site=1), "gas")
    free.take("192.0.2.1", "gas")


CITIES = [("weather", lat, 1.0) for lat in range(5)]
TOKEN = "token 0123456789abcdef"


@pytest.mark.parametrize(("client", "scope"), [(TOKEN, "endpoint"), ("192.0.2.1", "question")])
def test_five_questions_of_an_endpoint_are_answered_at_once_and_the_same_one_is_not(client, scope):
    clock = Clock()
    free = limits(clock, scope=scope)
    for city in CITIES:
        free.take(client, "weather", question=city)
    with pytest.raises(RateLimited, match="other arguments are answered now") as refused:
        free.take(client, "weather", question=CITIES[0])
    assert refused.value.extra == {"retry_after_seconds": 30, "limit": "spacing"}
    clock.now += 30
    free.take(client, "weather", question=CITIES[0])


@proves("limits.questions")
def test_a_scan_is_stopped_after_a_dozen_questions_and_goes_on_when_the_window_is_over():
    clock = Clock()
    free = limits(clock)
    for lat in range(12):
        free.take(TOKEN, "weather", question=("weather", lat))
    for lat in range(12, 1000):
        with pytest.raises(RateLimited, match="weather answers 12 different questions per 30 s") as refused:
            free.take(TOKEN, "weather", question=("weather", lat))
        assert refused.value.extra["limit"] == "questions weather"
    free.take(TOKEN, "air_quality", question=("air_quality", 1))
    clock.now += 30
    free.take(TOKEN, "weather", question=("weather", 999))


def test_by_default_the_second_question_is_refused_and_told_what_helps():
    free = limits(Clock())
    free.take("192.0.2.1", "weather", question=CITIES[0])
    with pytest.raises(RateLimited, match="weather is answered once in 30 s for a client, whatever the arg") as refused:
        free.take("192.0.2.1", "weather", question=CITIES[1])
    assert "With a bearer token (a balance of 0 is enough)" in refused.value.detail


def test_an_unchanged_answer_gives_back_the_spacing_of_its_own_question():
    free = limits(Clock())
    free.take(TOKEN, "weather", question=CITIES[0])
    free.give_back_spacing(TOKEN, "weather", CITIES[0])
    free.take(TOKEN, "weather", question=CITIES[0])


def test_a_network_of_48_asks_sixteen_times_as_many_questions():
    free = limits(Clock(), scope="question")
    answered = 0
    for number in range(400):
        try:
            free.take(f"2001:db8:0:{number:x}::/64", "weather", question=("weather", number))
        except RateLimited:
            break
        answered += 1
    assert answered == 12 * 16


def test_the_day_and_the_distance_are_told_as_they_are_counted():
    free = FreeLimits(daily=100_000, spacing_s=30, monotonic=lambda: 0.0)
    assert free.policy == '"daily";q=100000;w=86400, "spacing";q=1;w=30'
    assert free.take("192.0.2.1", "weather", spaced=False)[0].header == '"daily";r=99999;t=1'
    assert len(free.take("192.0.2.1", "weather")) == 2
    with pytest.raises(RateLimited) as refused:
        free.take("192.0.2.1", "weather")
    assert refused.value.headers == {
        "Retry-After": "30",
        "RateLimit-Policy": '"spacing";q=1;w=30',
        "RateLimit": '"spacing";r=0;t=30',
    }
    assert len(free.take("192.0.2.1", "weather", spaced=False)) == 1
    off = FreeLimits(daily=1, spacing_s=30, monotonic=lambda: 0.0, enabled=False)
    assert [off.take("192.0.2.1", "weather") for _ in range(3)] == [[], [], []]


def test_account_tools_have_sixty_calls_a_minute_and_none_are_counted_where_limits_are_off():
    limits = PersonalLimits(monotonic=lambda: 0.0)
    for _ in range(60):
        limits.take("a", "tool")
    limits.check("b", "tool")
    for refuse in (limits.check, limits.take):
        with pytest.raises(RateLimited, match=r"together answer 60 calls per 60 s and caller\. Try again in 1 s"):
            refuse("a", "tool")
    off = PersonalLimits(per_minute=1, monotonic=lambda: 0.0, enabled=False)
    for _ in range(3):
        off.take("a", "tool", [(1, 60)])
        off.check("a", "tool", [(1, 60)])
