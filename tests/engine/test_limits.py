"""Limits: as strict as they say, the same for everybody, in bounded memory, and for the right client."""

import time
import tracemalloc
from contextlib import nullcontext
from fractions import Fraction

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.parts import engine, number_source
from tests.engine.toy import REGISTRY
from toolserver.access import Addresses
from toolserver.answers import ENTRIES
from toolserver.errors import RateLimited
from toolserver.limits import KEYS, Bucket, Distinct, FreeLimits, PersonalLimits, Quota
from toolserver.rendering import Rendered
from toolserver.upstream.cache import ENTRIES_FROM_USERS

DAY = 86_400


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """The same rule by counting: each call fills a place, and places empty one after another, one an interval."""

    def __init__(self, quota: int, interval: Fraction) -> None:
        self.quota, self.interval = quota, interval
        self.free_at: list[Fraction] = []  # when each filled place is empty again

    def take(self, now: Fraction) -> tuple[bool, int]:
        self.free_at = [at for at in self.free_at if at > now]
        if len(self.free_at) >= self.quota:
            return False, 0
        self.free_at.append((self.free_at[-1] if self.free_at else now) + self.interval)
        return True, self.quota - len(self.free_at)

    def wait(self, now: Fraction) -> Fraction:
        """Until a place is empty."""
        return self.free_at[0] - now


@given(
    quota=st.integers(1, 12),
    interval=st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(30), Fraction(864)]),
    steps=st.lists(st.integers(0, 40), max_size=60),
)
def test_a_bucket_allows_what_counting_allows(quota, interval, steps):
    clock, model = Clock(), Counted(quota, interval)
    bucket = Bucket(Quota("x", quota, float(quota * interval)), monotonic=clock)
    at = Fraction(1000)
    for step in steps:
        at += step * interval / 8
        clock.now = float(at)
        allowed, remaining = model.take(at)
        looked, verdict = bucket.look("a"), bucket.take("a")

        assert (verdict.allowed, looked.allowed) == (allowed, allowed)
        assert verdict.remaining == remaining
        assert verdict.retry_after_s == (0 if allowed else pytest.approx(float(model.wait(at))))
        assert bucket.look("somebody else").remaining == quota


@given(
    quota=st.integers(1, 8),
    window_s=st.integers(1, 100),
    steps=st.lists(st.floats(0, 50), min_size=1, max_size=80),
    length=st.floats(0.001, 300),
)
def test_no_stretch_of_time_holds_more_calls_than_the_quota_and_what_grows_back_in_it(quota, window_s, steps, length):
    clock = Clock()
    bucket = Bucket(Quota("x", quota, window_s), monotonic=clock)
    made = []
    for step in steps:
        clock.now += step
        if bucket.take("a").allowed:
            made.append(clock.now)
    for start in made:
        assert sum(start <= at <= start + length for at in made) <= quota + length * quota / window_s + 1e-6


@given(quota=st.integers(1, 6), steps=st.lists(st.floats(0, 20), min_size=1, max_size=40))
def test_who_waits_as_long_as_told_is_let_in_and_who_comes_earlier_is_not(quota, steps):
    clock = Clock()
    bucket = Bucket(Quota("x", quota, 60), monotonic=clock)
    for step in steps:
        clock.now += step
        verdict = bucket.take("a")
        if not verdict.allowed:
            begun, interval_s = clock.now, 60 / quota
            clock.now = max(begun, begun + verdict.retry_after_s - interval_s / 100)
            assert not bucket.look("a").allowed
            clock.now = begun + verdict.retry_after_s
            assert bucket.take("a").allowed


def test_a_refused_call_costs_nothing_and_one_given_back_counts_no_more():
    clock = Clock()
    bucket = Bucket(Quota("x", 2, 60), monotonic=clock)
    bucket.take("a")
    bucket.take("a")
    for _ in range(1000):
        assert not bucket.take("a").allowed
    clock.now += 30
    assert bucket.take("a").allowed
    bucket.give_back("a")
    bucket.give_back("nobody")
    assert bucket.take("a").allowed
    assert not bucket.take("a").allowed


def limits(clock: Clock, **more: int) -> FreeLimits:
    return FreeLimits(daily=100_000, spacing_s=30, monotonic=clock, **more)


def test_the_call_after_the_hundred_thousandth_is_one_too_many():
    clock = Clock()
    free = limits(clock)
    for number in range(100_000):
        standings = free.take("192.0.2.1", f"endpoint {number}")
        clock.now += 1e-7
    assert [s.verdict.remaining for s in standings] == [0, 0]

    with pytest.raises(RateLimited) as refused:
        free.take("192.0.2.1", "another endpoint")
    assert refused.value.extra == {"retry_after_seconds": 1, "limit": "daily"}
    assert refused.value.headers["RateLimit"].startswith('"daily";r=0;t=')
    assert free.spacing.look("192.0.2.1 another endpoint").remaining == 1  # nothing was counted
    assert free.take("192.0.2.2", "another endpoint")[0].verdict.remaining == 99_999

    clock.now += DAY / 100_000
    free.take("192.0.2.1", "another endpoint")
    with pytest.raises(RateLimited):
        free.take("192.0.2.1", "one more")
    clock.now += DAY
    assert free.take("192.0.2.1", "one more")[0].verdict.remaining == 99_999


def test_a_call_that_is_too_soon_costs_nothing_of_the_day():
    clock = Clock()
    free = limits(clock)
    free.take("a", "gas")
    for _ in range(50):
        with pytest.raises(RateLimited) as refused:
            free.take("a", "gas")
    assert refused.value.extra == {"retry_after_seconds": 30, "limit": "spacing"}
    assert free.take("a", "forex")[0].verdict.remaining == 99_998
    clock.now += 30
    assert free.take("a", "gas")[0].verdict.remaining == 99_999  # 34 have grown back


def test_a_million_clients_leave_no_more_behind_than_the_bound_and_are_counted_as_fast_as_the_first():
    bucket = Bucket(Quota("x", 1, 30), monotonic=Clock())
    begun = time.perf_counter()
    for number in range(KEYS):
        bucket.take(f"client {number}")
    filled = time.perf_counter()
    for number in range(KEYS, 1_000_000):
        bucket.take(f"client {number}")
    ended = time.perf_counter()

    assert (len(bucket), bucket.forgotten) == (KEYS, 1_000_000 - KEYS)
    assert not bucket.look("client 999999").allowed  # the last ones are remembered
    each, each_beyond = (filled - begun) / KEYS, (ended - filled) / (1_000_000 - KEYS)
    assert each_beyond < 20 * each


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
    assert (len(free.daily), len(free.spacing), len(free.distinct._seen)) == (2000, 2000, 2000)


def test_who_is_full_again_is_forgotten_first_and_loses_nothing():
    clock = Clock()
    bucket = Bucket(Quota("x", 1, 30), monotonic=clock, keys=100)
    for number in range(100):
        bucket.take(f"early {number}")
    clock.now += 31
    for number in range(100):
        bucket.take(f"late {number}")
    assert bucket.forgotten == 0
    assert not any(bucket.look(f"late {number}").allowed for number in range(100))


def test_a_million_places_leave_no_more_behind_than_the_bound():
    """Answers and source answers are kept for so many coordinates and no more, whoever asks for them."""

    async def ask() -> None:
        source = number_source(user_input=True)
        async with engine(REGISTRY) as e:
            rendered = Rendered(b"{}", 0, 1e12, None)
            table = e.cache._table(source)
            for number in range(1_000_000):
                place = (number % 36_000 / 100 - 180, number // 36_000 / 100)
                e.answers._keep(("weather", *place), rendered)
                if number % 10 == 0:
                    table[source.name, "request", place] = None
            assert len(e.answers._kept) == ENTRIES
            assert len(table) == ENTRIES_FROM_USERS
            assert e.answers.hit(("weather", *place), 0) is rendered

    anyio.run(ask)


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
        assert len(e.cache._kept) == 1  # callers' questions push out nothing of ours
        assert (e.cache._flights._flights, e.answers._flights._flights) == ({}, {})
        await e.cache.fresh(source, 1199, sla_s=30)
        assert e.internet.asked == []


def test_so_many_different_values_and_those_as_often_as_one_likes():
    clock = Clock()
    distinct, quota = Distinct(monotonic=clock), Quota("distinct ip", 20, 3600)
    for number in range(20):
        for _ in range(3):
            distinct.take("a", quota, f"192.0.2.{number}")
        clock.now += 60
    with pytest.raises(RateLimited) as refused:
        distinct.take("a", quota, "192.0.2.20")
    assert refused.value.extra == {"retry_after_seconds": 3600 - 20 * 60, "limit": "distinct ip"}
    distinct.take("a", quota, "192.0.2.7")
    distinct.take("b", quota, "192.0.2.20")
    clock.now += 3600 - 20 * 60
    distinct.take("a", quota, "192.0.2.20")
    with pytest.raises(RateLimited):
        distinct.take("a", quota, "192.0.2.21")


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 30)), max_size=60), st.integers(1, 5))
def test_different_values_are_counted_as_one_would(calls, most):
    clock, seen = Clock(), {}
    distinct, quota = Distinct(monotonic=clock), Quota("x", most, 60)
    for value, step in calls:
        clock.now += step
        seen = {v: at for v, at in seen.items() if at > clock.now - 60}
        if value in seen or len(seen) < most:
            seen.setdefault(value, clock.now)
            distinct.take("a", quota, str(value))
        else:
            with pytest.raises(RateLimited):
                distinct.take("a", quota, str(value))


def test_different_values_of_many_clients_are_kept_for_so_many_clients():
    distinct, quota = Distinct(monotonic=Clock(), clients=1000), Quota("x", 2, 60)
    for number in range(100_000):
        distinct.take(f"client {number}", quota, "192.0.2.1")
    for number in range(50):
        with pytest.raises(RateLimited) if number >= 2 else nullcontext():
            distinct.take("greedy", quota, str(number))
    assert len(distinct._seen) == 1000
    assert len(distinct._seen["greedy"]) == 2  # what was refused is not kept


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


def test_many_addresses_leave_a_small_table_behind():
    addresses = Addresses(())
    for number in range(20_000):
        assert addresses.client(f"198.{number >> 16}.{number >> 8 & 255}.{number & 255}") != "unknown"
    assert len(addresses._known) <= 4096
