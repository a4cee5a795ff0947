"""Invented tokens are refused by address, and a customer behind the same address is not."""

import pytest

from toolserver.calls.tokens import TRIES, TokenChecks
from toolserver.core.caller import Caller
from toolserver.errors import RateLimited


def token(number):
    return f"svc_live_{number:064x}"


def caller(number, client="192.0.2.1", **more):
    return Caller(client=client, token=token(number), **more)


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def tokens(now):
    return TokenChecks(monotonic=lambda: now[0])


def tried(tokens, count, **more):
    for number in range(count):
        tokens.record(caller(number, **more), known=False)


def test_an_address_that_tries_many_tokens_waits(tokens, now):
    tried(tokens, TRIES.quota - 1)
    tokens.check(caller(1000))
    tried(tokens, 1)
    with pytest.raises(RateLimited) as refused:
        tokens.check(caller(1000))
    assert refused.value.extra["limit"] == "unknown tokens"
    assert refused.value.headers["Retry-After"] == "2"
    tokens.check(caller(1000, client="192.0.2.2"))
    now[0] += TRIES.window_s
    tokens.check(caller(1000))


def test_a_token_that_was_good_before_is_never_suspect(tokens):
    tokens.record(caller(7), known=True)
    tried(tokens, TRIES.quota + 5)
    tokens.check(caller(7))
    assert tokens.is_suspect(caller(8))


def test_calls_without_a_token_and_the_owner_s_own_are_not_counted(tokens):
    tried(tokens, TRIES.quota + 5)
    tokens.check(Caller(client="192.0.2.1"))
    tokens.check(caller(8, limited=False))
    tried(tokens, TRIES.quota + 5, client="local", limited=False)
    tokens.check(caller(8, client="local"))


def test_where_limits_are_off_nobody_is_suspect(now):
    off = TokenChecks(monotonic=lambda: now[0], enabled=False)
    tried(off, TRIES.quota + 5)
    off.check(caller(8))
