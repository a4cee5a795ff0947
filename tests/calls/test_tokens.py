"""Invented tokens are refused by address, and a customer behind the same address is not."""

from dataclasses import replace

import anyio
import pytest

from tests.calls.parts import START
from tests.calls.toy import REGISTRY
from tests.requirements import proves
from toolserver.calls.pipeline import CLIENT_S, GOOD_TOKENS, TOKEN_TRIES, TokenChecks
from toolserver.calls.rate_limit import Quota
from toolserver.calls.visitor_tokens import VisitorTokens
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller, token_hash
from toolserver.errors import BillingUnavailable, InsufficientCredits, InvalidToken, MissingToken, RateLimited
from toolserver.money.ledger.memory import MemoryLedger


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
    return TokenChecks(ledger, VisitorTokens(None, ManualClock(START)), monotonic=lambda: now[0])


def tried(tokens, count, **more):
    for number in range(count):
        tokens.record(caller(number, **more), is_valid=False)


@proves("limits.invented-tokens")
def test_an_address_that_tries_many_tokens_waits(tokens, now):
    tried(tokens, TOKEN_TRIES.quota - 1)
    tokens.check(caller(1000))
    tried(tokens, 1)
    with pytest.raises(RateLimited) as refused:
        tokens.check(caller(1000))
    assert refused.value.extra["limit"] == "unknown tokens"
    assert refused.value.headers["Retry-After"] == "2"
    tokens.check(caller(1000, client="192.0.2.2"))
    now[0] += TOKEN_TRIES.window_s
    tokens.check(caller(1000))


def test_a_token_that_was_good_before_is_never_suspect(tokens):
    tokens.record(caller(7), is_valid=True)
    tried(tokens, TOKEN_TRIES.quota + 5)
    tokens.check(caller(7))
    assert tokens.is_suspect(caller(8))


def test_calls_without_a_token_and_the_owner_s_own_are_not_counted(tokens):
    tried(tokens, TOKEN_TRIES.quota + 5)
    tokens.check(Caller(client="192.0.2.1"))
    tokens.check(caller(8, limited=False))
    tried(tokens, TOKEN_TRIES.quota + 5, client="local", limited=False)
    tokens.check(caller(8, client="local"))


def test_where_limits_are_off_nobody_is_suspect(ledger, now):
    off = TokenChecks(ledger, VisitorTokens(None, ManualClock(START)), monotonic=lambda: now[0], enabled=False)
    tried(off, TOKEN_TRIES.quota + 5)
    off.check(caller(8))


async def test_a_client_is_known_at_once_for_a_second_after_the_ledger_named_it(ledger, tokens, now):
    ledger.fund(token(7), 5)
    assert tokens.find_client(token(7)) is None
    name = await tokens.identify_client(caller(7))

    assert name == f"token {token_hash(token(7)).hex()}"
    assert tokens.find_client(token(7)) == name
    assert tokens.find_client(token(8)) is None
    now[0] += CLIENT_S
    assert tokens.find_client(token(7)) is None


async def test_a_token_that_the_ledger_does_not_know_is_counted_by_address_each_time(ledger, tokens, now):
    for _ in range(TOKEN_TRIES.quota):
        assert await tokens.identify_client(caller(9)) == "192.0.2.1"
        assert tokens.find_client(token(9)) is None
    assert tokens.is_suspect(caller(9))
    assert tokens.find_client("Basic abc") is None


@proves("limits.invented-tokens")
async def test_a_suspect_and_a_malformed_token_are_counted_by_address_without_asking_the_ledger(ledger, tokens):
    ledger.fund(token(7), 5)
    for _ in range(TOKEN_TRIES.quota + 5):
        assert await tokens.identify_client(Caller("192.0.2.1", "svc_live_short")) == "192.0.2.1"
    assert not tokens.is_suspect(caller(9))
    tried(tokens, TOKEN_TRIES.quota)
    assert await tokens.identify_client(caller(7)) == "192.0.2.1"
    assert await tokens.identify_client(Caller("192.0.2.1")) == "192.0.2.1"
    assert await tokens.identify_client(caller(7, client="192.0.2.2")) == f"token {token_hash(token(7)).hex()}"


async def test_what_a_token_has_left_is_told_if_it_suffices_and_else_what_is_missing(ledger, tokens):
    report = REGISTRY["premium_report"]
    ledger.fund(token(2), 2)
    ledger.fund(token(1), 1)
    assert await tokens.check_funds(report, token(2), caller(2)) == 2
    with pytest.raises(InsufficientCredits, match="costs 2 credits, but only 1 are left") as refused:
        await tokens.check_funds(report, token(1), caller(1))
    assert refused.value.extra.items() >= {("required", 2), ("credits_remaining", 1)}


async def test_funds_are_looked_up_with_the_same_count_of_unknown_tokens(ledger, tokens):
    ledger.fund(token(7), 5)
    await tokens.check_funds(REGISTRY["premium_report"], token(7), caller(7))
    for number in range(100, 100 + TOKEN_TRIES.quota):
        with pytest.raises(InvalidToken):
            await tokens.check_funds(REGISTRY["premium_report"], token(number), caller(number))
    assert (tokens.is_suspect(caller(8)), tokens.is_suspect(caller(7))) == (True, False)


def test_a_token_is_required_in_its_form_and_from_nobody_suspect(tokens):
    report = REGISTRY["premium_report"]
    assert tokens.require(report, caller(7)) == token(7)
    with pytest.raises(MissingToken, match=r"premium_report costs 2 credits: send a bearer token\."):
        tokens.require(report, Caller("192.0.2.1"))
    with pytest.raises(MissingToken, match="costs 1 credit: "):
        tokens.require(replace(report, credits=1), Caller("192.0.2.1"))
    with pytest.raises(MissingToken, match="number acts for the owner of a token: "):
        tokens.require(REGISTRY["number"], Caller("192.0.2.1"))
    with pytest.raises(InvalidToken, match="malformed"):
        tokens.require(report, Caller("192.0.2.1", "svc_live_short"))
    tried(tokens, TOKEN_TRIES.quota)
    with pytest.raises(RateLimited):
        tokens.require(report, caller(7))


def test_a_suspect_is_told_how_long_to_wait(tokens, now):
    tried(tokens, TOKEN_TRIES.quota)
    now[0] += 1.5
    with pytest.raises(
        RateLimited, match=r"Too many unknown tokens came from this address\. Try again in 1 s\."
    ) as told:
        tokens.check(caller(1000))
    assert told.value.headers == {
        "Retry-After": "1",
        "RateLimit-Policy": '"unknown tokens";q=30;w=60',
        "RateLimit": '"unknown tokens";r=0;t=59',
    }
    assert told.value.extra["retry_after_seconds"] == 1


def test_an_address_has_thirty_tries_a_minute_and_ten_thousand_good_tokens_are_remembered():
    assert (TOKEN_TRIES, CLIENT_S, GOOD_TOKENS) == (Quota("unknown tokens", 30, 60), 1.0, 10_000)


class SilentLedger(MemoryLedger):
    """A ledger that refuses, or that does not answer for `silent_s` seconds."""

    silent_s: float | None = None

    async def balance(self, who):
        if self.silent_s is None:
            raise BillingUnavailable("The ledger is down.")
        await anyio.sleep(self.silent_s)
        return await super().balance(who)


async def test_what_a_token_has_left_is_asked_for_once_a_second_and_again_after_it_spent(tokens, ledger, now):
    await ledger.mint(token(7), 5, cause="test")
    assert tokens.find_credits(token(7)) is None
    assert (await tokens.ask_credits(caller(7)), tokens.find_credits(token(7))) == (5, 5)
    await ledger.mint(token(7), 5, cause="more")
    assert await tokens.ask_credits(caller(7)) == 5
    tokens.forget_credits()
    assert await tokens.ask_credits(caller(7)) == 10
    await ledger.mint(token(7), 5, cause="still more")
    now[0] += CLIENT_S
    assert tokens.find_credits(token(7)) is None
    assert await tokens.ask_credits(caller(7)) == 15


@pytest.mark.parametrize("silent_s", [None, 3600.0])
async def test_a_ledger_that_is_silent_holds_up_no_free_answer_and_nothing_is_invented(now, silent_s):
    ledger = SilentLedger()
    ledger.silent_s = silent_s
    await ledger.mint(token(7), 5, cause="test")
    tokens = TokenChecks(ledger, VisitorTokens(None, ManualClock(START)), monotonic=lambda: now[0])
    assert await tokens.ask_credits(caller(7)) is None
    assert tokens.find_credits(token(7)) is None


@proves("limits.invented-tokens")
async def test_an_invented_token_on_a_free_tool_counts_by_address_and_is_not_looked_up_for_ever(tokens):
    for number in range(TOKEN_TRIES.quota):
        assert await tokens.ask_credits(caller(number)) is None
    assert tokens.is_suspect(caller(1000))
    assert await tokens.ask_credits(Caller(client="192.0.2.1", token="svc_live_short")) is None
    assert await tokens.ask_credits(Caller(client="192.0.2.1")) is None
