"""The contract of a store of OAuth, over every engine."""

import pytest

from tests.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from toolserver.mcp.oauth import memory_store, sqlite_store
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore
from toolserver.mcp.oauth.records import (
    DAY_MS,
    HOUR_MS,
    ConsentRequest,
    GrantSecret,
    OAuthClient,
    OAuthGrant,
    hash_secret,
    make_secret,
)
from toolserver.mcp.oauth.sqlite_store import SqliteOAuthStore
from toolserver.mcp.oauth.store import IDLE_CLIENT_MS, UNUSED_CLIENT_MS, OAuthStoreFull

NOW = 1_800_000_000_000
CHILD = f"svc_live_{'ab' * 32}"
CLIENT = OAuthClient("client_1", "Host", ("https://host.example/back", "http://127.0.0.1/"), NOW)
REQUEST = ConsentRequest(
    *(hash_secret("request"), hash_secret("cookie"), "client_1", "Host", CLIENT.redirect_uris[0], "state"),
    *("challenge", NOW, NOW + HOUR_MS),
)
GRANT = OAuthGrant("grant_1", "client_1", CLIENT.redirect_uris[0], "challenge", "cd" * 32, NOW, NOW + 30 * DAY_MS)


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryOAuthStore()
        return
    async with opened_file(request.param, tmp_path) as file:
        yield SqliteOAuthStore(file)


def made(kind, expires_at=NOW + HOUR_MS, grant="grant_1"):
    return make_secret(kind, grant, CHILD, expires_at)[1]


async def allowed(store):
    """A store with a grant; its code."""
    code = made("code")
    await store.add_client(CLIENT)
    await store.add_request(REQUEST)
    assert await store.allow_request(REQUEST.id, GRANT, code, NOW)
    return code


async def test_a_client_is_found_as_it_was_registered(store):
    secret = CLIENT._replace(id="client_2", auth_method="client_secret_post", secret_hash=hash_secret("s"))
    await store.add_client(CLIENT)
    await store.add_client(secret)
    assert await store.find_client("client_1") == CLIENT
    assert await store.find_client("client_2") == secret
    assert await store.find_client("client_3") is None


async def test_a_request_is_answered_once(store):
    await store.add_request(REQUEST)
    assert await store.find_request(REQUEST.id) == REQUEST
    assert await store.deny_request(REQUEST.id, NOW + 1)
    assert not await store.deny_request(REQUEST.id, NOW + 2)
    assert not await store.allow_request(REQUEST.id, GRANT, made("code"), NOW + 3)
    assert (await store.find_request(REQUEST.id)).answered_at == NOW + 1
    assert await store.find_request(hash_secret("other")) is None
    assert not await store.deny_request(hash_secret("other"), NOW)


async def test_what_is_bought_is_kept_until_the_request_is_answered(store):
    await store.add_request(REQUEST)
    await store.keep_purchase(REQUEST.id, b"sealed")
    assert (await store.find_request(REQUEST.id)).purchase == b"sealed"
    assert await store.allow_request(REQUEST.id, GRANT, made("code"), NOW)
    assert (await store.find_request(REQUEST.id)).purchase is None


async def test_a_grant_is_found_by_its_secrets_and_keeps_its_client(store):
    code = await allowed(store)
    assert await store.find_secret(code.hash) == (code, GRANT)
    assert await store.find_secret(hash_secret("other")) is None
    assert (await store.find_client("client_1")).used_at == NOW


async def test_a_secret_is_exchanged_once_for_others(store):
    code = await allowed(store)
    access, refresh, late = made("access"), made("refresh"), made("access")
    assert await store.exchange(code.hash, [access, refresh], NOW + 5)
    assert not await store.exchange(code.hash, [late], NOW + 6)
    assert (await store.find_secret(code.hash)).secret.used_at == NOW + 5
    assert (await store.find_secret(refresh.hash)).secret == refresh
    assert await store.find_secret(late.hash) is None
    assert (await store.find_client("client_1")).used_at == NOW + 5


async def test_nothing_of_a_revoked_grant_is_exchanged(store):
    code = await allowed(store)
    await store.revoke_grant("grant_1", NOW + 1)
    await store.revoke_grant("grant_1", NOW + 9)
    await store.revoke_grant("grant_2", NOW)
    assert not await store.exchange(code.hash, [made("access")], NOW + 2)
    assert (await store.find_secret(code.hash)).grant.revoked_at == NOW + 1


async def test_rotated_tokens_of_a_grant_are_bounded_and_expired_access_tokens_go(store, monkeypatch):
    for module in (memory_store, sqlite_store):
        monkeypatch.setattr(module, "MOST_USED", 3)
    last = await allowed(store)
    used, old_access = [], made("access", NOW + 3)
    for turn in range(1, 6):
        new = made("refresh")
        assert await store.exchange(last.hash, [new, old_access] if turn == 1 else [new], NOW + turn)
        used.append(last.hash)
        last = new
    known = [await store.find_secret(hash) is not None for hash in used]
    assert known == [False, False, True, True, True]
    assert await store.find_secret(last.hash) is not None
    assert await store.find_secret(old_access.hash) is None


async def test_what_ended_is_swept_and_nothing_else(store):
    code = await allowed(store)
    assert await store.sweep(NOW + HOUR_MS - 1) == 0
    await store.sweep(NOW + HOUR_MS)
    assert await store.find_secret(code.hash) is None
    assert await store.find_request(REQUEST.id) is None
    refresh = made("refresh", NOW + 90 * DAY_MS, "grant_2")
    await store.add_request(REQUEST)
    assert await store.allow_request(REQUEST.id, GRANT._replace(id="grant_2"), refresh, NOW)
    await store.sweep(NOW + 30 * DAY_MS)
    assert await store.find_secret(refresh.hash) is None, "its grant has ended"


async def test_clients_that_nobody_uses_are_forgotten(store):
    used = CLIENT._replace(id="client_2", used_at=NOW)
    await store.add_client(CLIENT)
    await store.add_client(used)
    await store.sweep(NOW + UNUSED_CLIENT_MS)
    assert await store.find_client("client_1") is None
    assert await store.find_client("client_2") == used
    await store.sweep(NOW + IDLE_CLIENT_MS)
    assert await store.find_client("client_2") is None


async def test_full_tables_forget_what_ended_first_and_then_refuse(store, monkeypatch):
    for module in (memory_store, sqlite_store):
        monkeypatch.setattr(module, "MOST_CLIENTS", 2)
        monkeypatch.setattr(module, "MOST_REQUESTS", 1)
    await store.add_client(CLIENT)
    await store.add_client(CLIENT._replace(id="client_2"))
    with pytest.raises(OAuthStoreFull):
        await store.add_client(CLIENT._replace(id="client_3"))
    await store.add_client(CLIENT._replace(id="client_4", created_at=NOW + UNUSED_CLIENT_MS))
    await store.add_request(REQUEST)
    with pytest.raises(OAuthStoreFull):
        await store.add_request(REQUEST._replace(id=hash_secret("2")))
    await store.add_request(REQUEST._replace(id=hash_secret("3"), created_at=NOW + HOUR_MS))


def test_a_secret_is_made_with_its_hash_and_a_box_that_only_it_opens():
    secret, stored = make_secret("access", "grant_1", CHILD, NOW)
    assert isinstance(stored, GrantSecret)
    assert stored.hash == hash_secret(secret)
    assert secret.encode() not in stored.sealed
    assert CHILD.encode() not in stored.sealed
