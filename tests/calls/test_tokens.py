"""Invented tokens are refused by address, and a customer behind the same address is not."""

import pytest

from toolserver.calls.tokens import CLIENT_S, TRIES, TokenChecks
from toolserver.core.caller import Caller, token_hash
from toolserver.errors import RateLimited
from toolserver.ledger.memory import MemoryLedger


def token(number):
    return f"svc_live_{number:064x}"


def caller(number, client="192.0.2.1", **more):
    return Caller(client=client, token=token(number), **more)


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def ledger():
    return MemoryLedger()


@pytest.fixture
def tokens(ledger, now):
    return TokenChecks(ledger, monotonic=lambda: now[0])


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


def test_where_limits_are_off_nobody_is_suspect(ledger, now):
    off = TokenChecks(ledger, monotonic=lambda: now[0], enabled=False)
    tried(off, TRIES.quota + 5)
    off.check(caller(8))


def header(number):
    return f"Bearer {token(number)}".encode()


async def test_a_client_is_known_at_once_for_a_second_after_the_ledger_named_it(ledger, tokens, now):
    ledger.fund(token(7), 5)
    assert tokens.find_client(header(7)) is None
    name = await tokens.identify_client(caller(7))

    assert name == f"token {token_hash(token(7)).hex()}"
    assert tokens.find_client(header(7)) == name
    assert tokens.find_client(header(8)) is None
    now[0] += CLIENT_S
    assert tokens.find_client(header(7)) is None


async def test_a_token_that_the_ledger_does_not_know_is_counted_by_address_each_time(ledger, tokens, now):
    for _ in range(TRIES.quota):
        assert await tokens.identify_client(caller(9)) == "192.0.2.1"
        assert tokens.find_client(header(9)) is None
    assert tokens.is_suspect(caller(9))
    assert tokens.find_client(b"Basic abc") is None
    assert tokens.find_client(b"") is None
