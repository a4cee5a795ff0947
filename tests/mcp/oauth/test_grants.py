"""Grants: codes and refresh tokens are used once, and everything ends with the allowance."""

import pytest

from tests.mcp.oauth.records import CHILD, CLIENT, NOW, REQUEST
from tests.requirements import proves
from toolserver.calls.visitor_tokens import VisitorTokens
from toolserver.clock import ManualClock
from toolserver.errors import BillingUnavailable
from toolserver.mcp.oauth.grants import ACCESS_MS, CODE_MS, GrantEnded, OAuthGrants
from toolserver.mcp.oauth.store import DAY_MS, MemoryOAuthStore, hash_secret


class Allowances:
    """Whether the allowance lives, and which were ended."""

    def __init__(self):
        self.live, self.ended, self.fails = True, [], False

    async def is_live(self, child):
        assert child == CHILD
        return self.live

    async def end(self, hash):
        if self.fails:
            raise BillingUnavailable("away")
        self.ended.append(hash)


@pytest.fixture
def allowances():
    return Allowances()


@pytest.fixture
def clock():
    from datetime import UTC, datetime

    return ManualClock(datetime.fromtimestamp(NOW / 1000, UTC))


@pytest.fixture
async def grants(allowances, clock):
    store = MemoryOAuthStore()
    await store.add_client(CLIENT)
    await store.add_request(REQUEST)
    opened = OAuthGrants(
        store, clock, VisitorTokens(None, clock), is_live=allowances.is_live, end_allowance=allowances.end
    )
    opened.store = store
    return opened


async def allow(grants, days=30):
    code = await grants.allow(REQUEST, CHILD, NOW + days * DAY_MS)
    assert code is not None
    return code


async def redeem(grants, secret, kind="code", client="client_1"):
    return await grants.exchange(secret, kind, client)


async def is_over(grants, tokens):
    with pytest.raises(GrantEnded):
        await grants.open_access(tokens.access)
    with pytest.raises(GrantEnded):
        await redeem(grants, tokens.refresh, "refresh")
    return True


async def test_a_code_gives_tokens_that_open_the_allowance(grants):
    tokens = await redeem(grants, await allow(grants))
    opened = await grants.open_access(tokens.access)
    assert (opened.child, opened.expires_at, tokens.lives_s) == (CHILD, NOW + ACCESS_MS, 3600)
    assert await grants.allow(REQUEST, CHILD, NOW + DAY_MS) is None, "the request was answered"


@proves("oauth.code-once")
async def test_a_code_that_is_used_twice_ends_the_grant_and_the_allowance(grants, allowances):
    ended = []
    grants.on_end = lambda: ended.append(1)
    code = await allow(grants)
    tokens = await redeem(grants, code)
    with pytest.raises(GrantEnded):
        await redeem(grants, code)
    assert await is_over(grants, tokens)
    assert ended
    assert len(allowances.ended[0]) == 64


@proves("oauth.code-once")
async def test_a_code_lives_a_minute_and_is_for_its_client(grants, clock):
    code = await allow(grants)
    with pytest.raises(GrantEnded):
        await redeem(grants, code, client="client_2")
    with pytest.raises(GrantEnded):
        await redeem(grants, code, kind="refresh")
    with pytest.raises(GrantEnded):
        await redeem(grants, "svc_code_" + "0" * 64)
    assert await grants.find(code, "code", "client_1") is not None
    clock.advance(CODE_MS / 1000)
    with pytest.raises(GrantEnded):
        await redeem(grants, code)


async def test_a_refresh_token_is_replaced_each_time_and_its_second_use_ends_the_family(grants):
    first = await redeem(grants, await allow(grants))
    second = await redeem(grants, first.refresh, "refresh")
    third = await redeem(grants, second.refresh, "refresh")
    assert (await grants.open_access(third.access)).child == CHILD
    with pytest.raises(GrantEnded):
        await redeem(grants, first.refresh, "refresh")
    for tokens in (first, second, third):
        assert await is_over(grants, tokens)


async def test_of_two_who_use_a_refresh_token_at_once_nobody_keeps_the_grant(grants):
    first = await redeem(grants, await allow(grants))

    async def find_unused(*_):
        return unused

    find, unused = grants.find, await grants.find(first.refresh, "refresh", "client_1")
    winner = await redeem(grants, first.refresh, "refresh")
    grants.find = find_unused
    with pytest.raises(GrantEnded):
        await redeem(grants, first.refresh, "refresh")
    grants.find = find
    assert await is_over(grants, winner)


async def test_an_access_token_lives_an_hour_and_no_longer_than_its_grant(grants, clock):
    tokens = await redeem(grants, await allow(grants))
    clock.advance(ACCESS_MS / 1000 - 1)
    await grants.open_access(tokens.access)
    clock.advance(1)
    with pytest.raises(GrantEnded):
        await grants.open_access(tokens.access)
    clock.advance(30 * DAY_MS / 1000 - ACCESS_MS / 1000 - 600)
    last = await redeem(grants, tokens.refresh, "refresh")
    assert last.lives_s == 600
    clock.advance(600)
    assert await is_over(grants, last)


async def test_neither_a_code_nor_a_refresh_token_is_an_access_token(grants):
    code = await allow(grants)
    with pytest.raises(GrantEnded):
        await grants.open_access(code)
    tokens = await redeem(grants, code)
    with pytest.raises(GrantEnded):
        await grants.open_access(tokens.refresh)


async def test_without_its_allowance_a_grant_ends_at_the_next_exchange(grants, allowances):
    tokens = await redeem(grants, await allow(grants))
    allowances.live = False
    with pytest.raises(GrantEnded):
        await redeem(grants, tokens.refresh, "refresh")
    allowances.live = True
    assert await is_over(grants, tokens)


async def test_a_client_revokes_its_own_grant_by_any_token_and_no_other(grants, allowances):
    tokens = await redeem(grants, await allow(grants))
    assert await grants.revoke(tokens.refresh, "client_2") is None
    assert await grants.revoke("svc_access_" + "0" * 64, "client_1") is None
    assert (await grants.open_access(tokens.access)).child == CHILD
    assert await grants.revoke(tokens.access, "client_1") is not None
    assert await is_over(grants, tokens)
    assert len(allowances.ended) == 1


async def test_a_grant_ends_also_while_the_ledger_is_away(grants, allowances):
    tokens = await redeem(grants, await allow(grants))
    allowances.fails = True
    await grants.revoke(tokens.access, "client_1")
    assert await is_over(grants, tokens)


@proves("oauth.secrets")
async def test_nothing_stored_opens_what_was_stored(grants):
    code = await allow(grants)
    found = await grants.store.find_secret(hash_secret(code))
    assert CHILD.encode() not in found.secret.sealed
    assert CHILD not in repr(found)
