"""A visitor token gives limits of its own and nothing else, nobody else can make one, and a network gets few."""

import stat
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.calls.instances import instances_on
from tests.calls.parts import POOR, RICH, START, engine, funded_money
from tests.calls.toy import FIRST, REGISTRY, SECOND
from tests.calls.visiting import read_work, solve, work_for_token
from tests.requirements import proves
from toolserver.calls.pipeline import TOKEN_TRIES
from toolserver.calls.visitor_tokens import (
    KEY_FILE,
    LIFE,
    WORK_S,
    VisitorCounts,
    VisitorIssuer,
    VisitorRules,
    VisitorTokens,
    count_zero_bits,
    open_visitor_key,
)
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.errors import (
    CallRejected,
    InvalidArguments,
    InvalidToken,
    NotSupported,
    RateLimited,
    StorageUnavailable,
    UnpaidCall,
)
from toolserver.money.receipts.keys import KeyFileBroken
from toolserver.settings import LimitSettings

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
LIMITED = {"limited": True}
EASY = VisitorRules(cheap=3, work_bits=2, most=200, most_of_network=2000)


@pytest.fixture
def clock():
    return ManualClock(START)


def issuer_of(clock, rules=EASY, **more):
    return VisitorIssuer(VisitorTokens(KEY, clock), VisitorCounts(rules), clock, secret=b"s", **more)


@proves("visitor.token")
def test_a_token_is_a_mac_over_its_id_and_its_issue_and_lives_thirty_days(clock):
    tokens = VisitorTokens(KEY, clock)
    one, other = tokens.make(), tokens.make()

    assert one.expires_at == START + timedelta(days=30)
    assert len(one.token) == len("svc_free_") + 64
    assert tokens.find_client(one.token) == f"visitor {one.token[9:33]}"
    assert tokens.find_client(one.token) != tokens.find_client(other.token)
    clock.advance(LIFE.total_seconds() - 1)
    assert VisitorTokens(KEY, clock).find_client(one.token), "another process with the same key knows it"
    clock.advance(1)
    assert tokens.find_client(one.token) is None
    assert tokens.find_end(one.token) == one.expires_at


@proves("visitor.forged")
def test_no_character_of_a_token_can_be_changed_and_no_other_key_makes_one(clock):
    tokens = VisitorTokens(KEY, clock)
    token = tokens.make().token

    for place in range(len("svc_free_"), len(token)):
        changed = token[:place] + ("0" if token[place] != "0" else "1") + token[place + 1 :]
        assert tokens.find_client(changed) is None
        assert tokens.find_end(changed) is None
    strangers = [VisitorTokens(OTHER_KEY, clock).make().token, token.upper(), token[:-1], token + "0", "svc_free_", ""]
    strangers += [f"svc_free_{'é' * 64}", f"svc_free_{chr(0xD800) * 64}", f"svc_live_{token[9:]}"]
    assert [tokens.find_client(stranger) for stranger in strangers] == [None] * len(strangers)


def test_the_key_is_a_file_of_its_owner_and_is_made_once(tmp_path):
    key = open_visitor_key(tmp_path)

    assert (len(key), open_visitor_key(tmp_path)) == (32, key)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    (tmp_path / KEY_FILE).write_bytes(b"short")
    with pytest.raises(KeyFileBroken, match=r"visitors\.key does not contain a key of 32 bytes"):
        open_visitor_key(tmp_path)


def test_a_mounted_secret_without_the_key_means_no_tokens_and_not_a_key_for_each_instance(tmp_path, clock):
    (tmp_path / "secret").write_text("not a folder: nothing can be written below it")

    key = open_visitor_key(tmp_path / "data", tmp_path / "secret")

    assert key is None
    tokens = VisitorTokens(key, clock)
    assert tokens.find_client(VisitorTokens(KEY, clock).make().token) is None
    with pytest.raises(NotSupported):
        tokens.make()


@asynccontextmanager
async def limited_engine(**limits):
    async with engine(REGISTRY, limits=LimitSettings(**limits)) as e:
        e.internet.serves(FIRST, {"value": 3})
        e.internet.serves(SECOND, {"value": 4})
        yield e


@proves("visitor.identity")
async def test_behind_one_address_each_visitor_has_a_budget_of_its_own_spaced_by_endpoint():
    async with limited_engine() as e:
        tokens = [e.service.visitors.tokens.make().token for _ in range(20)]
        for token in tokens:
            states = (await e.call("number", token=token, **LIMITED)).limit_states
            assert [state.remaining for state in states] == [99_999, 0]
        for token in tokens:
            with pytest.raises(RateLimited) as refused:
                await e.call("number", {"add": 1}, token=token, **LIMITED)
            assert refused.value.extra["limit"] == "spacing"
        await e.call("number", **LIMITED)
        e.clock.advance(30)
        for token in tokens:
            await e.call("number", {"add": 1}, token=token, **LIMITED)


@proves("visitor.identity")
async def test_an_operator_may_space_visitors_by_question():
    async with limited_engine(spacing_scope="question") as e:
        token = e.service.visitors.tokens.make().token
        for add in range(3):
            await e.call("number", {"add": add}, token=token, **LIMITED)
        with pytest.raises(RateLimited):
            await e.call("number", {"add": 1}, token=token, **LIMITED)


@proves("visitor.no-money")
async def test_a_visitor_is_told_to_pay_where_an_account_is_needed():
    async with limited_engine() as e:
        token = e.service.visitors.tokens.make().token
        with pytest.raises(UnpaidCall, match="premium_report costs 2 credits, and a visitor token has none") as refused:
            await e.call("premium_report", token=token, **LIMITED)
        assert (refused.value.code, refused.value.status) == ("payment_required", 402)
        with pytest.raises(UnpaidCall):
            await e.pipeline.check(e.registry["premium_report"], {}, Caller("192.0.2.1", token))
        assert not e.internet.asked
        await e.call("premium_report", token=RICH, **LIMITED)


@proves("visitor.forged")
@pytest.mark.parametrize("tool", ["number", "premium_report"])
async def test_a_forged_or_expired_token_counts_as_an_invented_one_by_address(tool):
    async with limited_engine(spacing_s=0.001) as e:
        old = e.service.visitors.tokens.make().token
        e.clock.advance(LIFE.total_seconds())
        forged = VisitorTokens(OTHER_KEY, e.clock).make().token
        for number in range(TOKEN_TRIES.quota):
            assert not e.pipeline.tokens.is_suspect(Caller("192.0.2.1", forged))
            token, text = ((old, "has expired"), (forged, "malformed or unknown"))[number % 2]
            with pytest.raises(InvalidToken, match=text) if tool == "premium_report" else nullcontext():
                await e.call(tool, token=token, **LIMITED)
            e.clock.advance(0.01)
        assert e.pipeline.tokens.is_suspect(Caller("192.0.2.1", forged))
        with pytest.raises(RateLimited, match="unknown tokens"):
            await e.call("premium_report", token=forged, **LIMITED)
        good = e.service.visitors.tokens.make().token
        assert not e.pipeline.tokens.is_suspect(Caller("192.0.2.1", good)), "a genuine one needs nobody's word"
        with pytest.raises(UnpaidCall):
            await e.call("premium_report", token=good, **LIMITED)


class WatchedLedger:
    """A ledger that notes every text that it is given."""

    def __init__(self, ledger):
        self._ledger, self.heard = ledger, set()

    def __getattr__(self, name):
        part = getattr(self._ledger, name)
        if not callable(part):
            return part

        def listen(*args, **named):
            self.heard.update(str(each) for each in (*args, *named.values()))
            return part(*args, **named)

        return listen


KINDS = ("visitor", "forged", "expired", "half", "rich", "poor", "unknown", None)


@proves("visitor.no-account")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(["number", "premium_report"])), max_size=20))
async def test_whatever_comes_no_ledger_hears_of_a_visitor_token(calls):
    money = funded_money(ManualClock(START))
    money.ledger.fund(RICH, 30)
    watched = WatchedLedger(money.ledger)
    async with engine(REGISTRY, limits=True, money=replace(money, own=watched)) as e:
        e.internet.serves(FIRST, {"value": 3})
        e.internet.serves(SECOND, {"value": 4})
        expired = e.service.visitors.tokens.make().token
        e.clock.advance(LIFE.total_seconds())
        tokens = {
            "visitor": e.service.visitors.tokens.make().token,
            "forged": VisitorTokens(OTHER_KEY, e.clock).make().token,
            "expired": expired,
            "half": "svc_free_123",
            "rich": RICH,
            "poor": POOR,
            "unknown": f"svc_live_{'c' * 64}",
            None: None,
        }
        before = await money.ledger.balance(RICH)
        sold = 0
        for kind, tool in calls:
            pays = kind == "rich" and tool == "premium_report"
            with nullcontext() if pays else suppress(CallRejected):
                sold += (await e.call(tool, token=tokens[kind], **LIMITED)).charged
        assert not [text for text in watched.heard if "svc_free_" in text]
        assert before - await money.ledger.balance(RICH) == sold


@proves("visitor.issue")
async def test_three_a_day_cost_nothing_and_then_the_work_doubles(clock):
    issuer, bits = issuer_of(clock), []
    for _ in range(3):
        await issuer.issue("192.0.2.1")
    for _ in range(6):
        with pytest.raises(RateLimited) as refused:
            await issuer.issue("192.0.2.1")
        work = refused.value.extra["work"]
        bits.append(work["bits"])
        await issuer.issue("192.0.2.1", work["challenge"], solve(work["challenge"], work["bits"]))
    assert bits == [2, 3, 4, 5, 6, 7]
    assert refused.value.extra["retry_after_seconds"] == 16 * 3600
    assert refused.value.headers == {
        "Retry-After": "57600",
        "RateLimit-Policy": '"visitor tokens";q=200;w=86400',
        "RateLimit": '"visitor tokens";r=192;t=57600',
    }
    await issuer.issue("192.0.2.2")
    clock.advance(16 * 3600)
    await issuer.issue("192.0.2.1")


@proves("visitor.issue")
async def test_an_address_gets_two_hundred_a_day_and_no_work_buys_more(clock):
    issuer = issuer_of(clock, VisitorRules(cheap=200, work_bits=1, most=200))
    for _ in range(200):
        await issuer.issue("2001:db8::/64")
    with pytest.raises(RateLimited, match="this address gets no more: 200 a day are issued") as refused:
        await issuer.issue("2001:db8::/64")
    assert refused.value.extra == {"retry_after_seconds": 57600, "limit": "visitor tokens"}


async def test_where_limits_are_off_a_token_takes_no_work(clock):
    issuer = issuer_of(clock, VisitorRules(cheap=0, most=0), enabled=False)
    assert issuer.tokens.find_client((await issuer.issue("192.0.2.1")).token)


@proves("visitor.work")
async def test_work_is_worth_a_token_to_its_address_alone_once_and_for_an_hour(clock):
    issuer = issuer_of(clock)
    challenge, bits = await read_work(issuer, "192.0.2.1")
    solution = solve(challenge, bits)
    wrong = next(text for text in map(str, range(1000)) if count_zero_bits(challenge, text) < bits)

    await read_work(issuer, "192.0.2.2")
    with pytest.raises(InvalidArguments, match="not a challenge that this address was given"):
        await issuer.issue("192.0.2.2", challenge, solution)
    for forged in (challenge.replace("-2-", "-0-"), challenge[:-1], "", "a-b-c-d-e", "\ud800-1-2-3-4", "1" * 5000):
        with pytest.raises(InvalidArguments, match="challenge"):
            await issuer.issue("192.0.2.1", forged, solution)
    for unsolved in (wrong, "9" * 65):
        with pytest.raises(InvalidArguments, match="solution"):
            await issuer.issue("192.0.2.1", challenge, unsolved)

    await issuer.issue("192.0.2.1", challenge, solution)
    with pytest.raises(RateLimited) as again:
        await issuer.issue("192.0.2.1", challenge, solution)
    assert again.value.extra["work"]["bits"] == bits + 1

    later, bits = await read_work(issuer, "192.0.2.1")
    clock.advance(WORK_S)
    with pytest.raises(RateLimited):
        await issuer.issue("192.0.2.1", later, solve(later, bits))


@proves("visitor.work")
async def test_work_of_yesterday_and_of_another_process_is_worth_nothing(clock):
    issuer = issuer_of(clock, EASY._replace(cheap=0))
    clock.advance(16 * 3600 - 60)
    challenge, bits = await read_work(issuer, "192.0.2.1")
    solution = solve(challenge, bits)
    other = VisitorIssuer(issuer.tokens, VisitorCounts(EASY), clock, secret=b"another")
    with pytest.raises(InvalidArguments):
        await other.issue("192.0.2.1", challenge, solution)
    clock.advance(60)
    with pytest.raises(RateLimited):
        await issuer.issue("192.0.2.1", challenge, solution)


@asynccontextmanager
async def issuers_on(engine_name, server):
    """Three issuers that an attacker can reach: one process, or instances that share a Redis. And their clock."""
    limits = LimitSettings(visitor_work_bits=1, visitor_cheap_per_day=1, visitor_per_day=6, visitor_network_per_day=40)
    if engine_name == "memory":
        async with engine(REGISTRY, limits=limits) as e:
            yield [e.service.visitors] * 3, e.clock
        return
    async with instances_on(server) as instances:
        started = [await instances.start(REGISTRY, limits=limits) for _ in range(3)]
        yield [each.service.visitors for each in started], instances.clock


@proves("visitor.network")
@pytest.mark.parametrize("engine_name", ["memory", pytest.param("redis", marks=pytest.mark.live)])
async def test_a_whole_network_that_works_shares_and_replays_gets_no_more_than_its_day(engine_name, request):
    server = request.getfixturevalue("redis_server") if engine_name == "redis" else None
    async with issuers_on(engine_name, server) as (issuers, clock):
        addresses = [f"2001:db8:0:{number:x}::/64" for number in range(30)]
        got, solved = {address: set() for address in addresses}, []

        for round_number in range(8):
            for number, address in enumerate(addresses):
                issuer = issuers[(number + round_number) % 3]
                token = await work_for_token(issuer, address)
                got[address].update({token.token} if token else ())
                for other in issuers:  # what has been solved before, by anyone, at every instance
                    for challenge, solution in solved[-6:]:
                        try:
                            got[address].add((await other.issue(address, challenge, solution)).token)
                        except (RateLimited, InvalidArguments):
                            pass
                try:
                    await issuer.issue(address)
                except RateLimited as refusal:
                    if work := refusal.extra.get("work"):
                        solved.append((work["challenge"], solve(work["challenge"], work["bits"])))

        assert sum(map(len, got.values())) == 40, "all that a /48 gets a day, and not one more"
        assert max(map(len, got.values())) <= 6
        assert await work_for_token(issuers[0], "2001:db8:1::/64"), "a neighbour is not part of it"
        assert await work_for_token(issuers[1], "192.0.2.1")
        clock.advance(16 * 3600)
        assert await work_for_token(issuers[2], addresses[0])


@pytest.mark.live
async def test_instances_share_their_tokens_and_issue_none_while_they_cannot_count_together(redis_server):
    async with instances_on(redis_server) as instances:
        one = await instances.start(REGISTRY, limits=True)
        redis_server.stop()
        try:
            with pytest.raises(StorageUnavailable) as refused:
                await one.service.visitors.issue("192.0.2.1")
        finally:
            redis_server.start()
        assert refused.value.headers["Retry-After"] == "10"
