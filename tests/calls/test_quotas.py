"""Quotas and their buckets: what counting allows, in bounded memory."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.size import sized
from toolserver.calls.rate_limit import (
    DROPPED,
    KEYS,
    WIDER,
    Bucket,
    ClientBuckets,
    LimitState,
    Quota,
    Verdict,
    make_rejection,
)


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


def test_clients_whose_bucket_is_full_again_are_not_kept():
    clock = Clock()
    bucket = Bucket(Quota("x", 2, 30), monotonic=clock)
    for number in range(1000):
        bucket.take(f"client {number}")
        clock.now += 1
    assert len(bucket) <= 15  # each is full again after 15 s
    assert bucket.forgotten == 0

    clock.now += 100
    bucket.take("a")
    bucket.take("a")
    for number in range(5):
        bucket.take(f"later {number}")
    assert not bucket.take("a").allowed


def test_many_more_clients_than_the_bound_leave_no_more_behind_than_the_bound():
    clients = sized(100_000, fast=20_000, long=1_000_000)
    bound = clients // 10
    bucket = Bucket(Quota("x", 1, 30), monotonic=Clock(), keys=bound)
    for number in range(clients):
        bucket.take(f"client {number}")

    assert (len(bucket), bucket.forgotten) == (bound, clients - bound)
    assert not bucket.look(f"client {clients - 1}").allowed  # the last ones are remembered


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


def test_a_refusal_says_its_rule_and_how_long_to_wait():
    clock = Clock()
    bucket = Bucket(Quota("own", 1, 60), monotonic=clock)
    bucket.take("a")
    refused = make_rejection(bucket.quota, bucket.look("a"))
    assert refused.detail == "At most 1 calls per 60 s are answered here. Try again in 60 s."
    assert refused.extra == {"retry_after_seconds": 60, "limit": "own"}
    assert make_rejection(bucket.quota, bucket.look("a"), "Because.").detail == "Because. Try again in 60 s."


def test_a_quota_and_its_state_are_told_in_the_words_of_the_headers():
    quota = Quota("spacing", 2, 60)
    assert quota.policy == '"spacing";q=2;w=60'
    told = {reset_s: LimitState(quota, reset_s).header for reset_s in (0.0, 30.0, 30.2, 60.0, 90.0)}
    assert told == {
        0.0: '"spacing";r=2;t=0',
        30.0: '"spacing";r=1;t=30',
        30.2: '"spacing";r=0;t=31',
        60.0: '"spacing";r=0;t=60',
        90.0: '"spacing";r=0;t=90',
    }
    assert LimitState(quota, 30.0).remaining == 1


def test_all_clients_of_a_wider_network_have_sixteen_times_the_quota():
    assert Quota("daily", 10, 60).widen() == Quota("daily of a /48", 160, 60)
    clock = Clock()
    buckets = ClientBuckets(Quota("visits", 2, 60), monotonic=clock)
    taken = [buckets.take(f"2001:db8:0:{n}::/64").allowed for n in range(20) for _ in range(2)]
    assert taken == [True] * 32 + [False] * 8
    assert buckets.take("2001:db8:1:1::/64").allowed, "another /48"
    assert buckets.look("203.0.113.1").allowed
    assert [buckets.take("203.0.113.1").allowed for _ in range(3)] == [True, True, False]
    clock.now += 60
    assert buckets.take("2001:db8:0:19::/64").allowed, "what was refused did not count"
    assert (WIDER, KEYS, DROPPED) == (16, 200_000, 3)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("daily", "The free tier allows 5 calls per 60 s."),
        ("daily of a /48", "All addresses of an IPv6 /48 together get 5 free calls per 60 s."),
        ("spacing of a /48", "All addresses of an IPv6 /48 together get 5 calls of one free endpoint per 60 s."),
        ("distinct ip of a /48", "All addresses of an IPv6 /48 together get 5 different values of ip per 60 s."),
        ("questions gas of a /48", "All addresses of an IPv6 /48 together get 5 different questions to gas per 60 s."),
        ("questions number", "number answers 5 different questions per 60 s and caller."),
        ("distinct ip port", "5 different values of ip and port are answered per 60 s. Repeats are exempt."),
        ("personal", "Payment, receipt and account tools together answer 5 calls per 60 s and caller."),
        ("premium", "Premium tools answer 5 calls per 60 s and token."),
        ("receipt_verify", "At most 5 calls per 60 s are answered here."),
    ],
)
def test_each_quota_says_its_rule(name, rule):
    assert make_rejection(Quota(name, 5, 60), Verdict(False, 0, 60, 1)).detail == f"{rule} Try again in 1 s."


@pytest.mark.parametrize(("wait_s", "told_s"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.01, 2), (29.5, 30)])
def test_a_wait_is_told_in_whole_seconds_that_suffice(wait_s, told_s):
    refused = make_rejection(Quota("spacing", 1, 60), Verdict(False, 0, 59.5, wait_s))
    assert refused.headers == {
        "Retry-After": str(told_s),
        "RateLimit-Policy": '"spacing";q=1;w=60',
        "RateLimit": '"spacing";r=0;t=60',
    }
    assert refused.extra == {"retry_after_seconds": told_s, "limit": "spacing"}


def test_each_call_drops_three_clients_whose_bucket_is_full_again():
    clock = Clock()
    bucket = Bucket(Quota("x", 1, 30), monotonic=clock)
    for number in range(10):
        bucket.take(f"early {number}")
    clock.now += 30
    sizes = []
    for number in range(4):
        bucket.take(f"late {number}")
        sizes.append(len(bucket))
    assert sizes == [8, 6, 4, 4]
    assert bucket.forgotten == 0


def test_a_refused_look_and_a_refused_call_say_when_the_bucket_is_full_again():
    clock = Clock()
    bucket = Bucket(Quota("x", 2, 60), monotonic=clock)
    assert bucket.look("a") == Verdict(True, 2, 0.0, 0.0)
    assert bucket.take("a") == Verdict(True, 1, 30.0, 0.0)
    assert bucket.take("a") == Verdict(True, 0, 60.0, 0.0)
    clock.now += 10
    assert bucket.look("a") == bucket.take("a") == Verdict(False, 0, 50.0, 20.0)
