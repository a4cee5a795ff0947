"""Clients and grants in the SDK's words. The whole way is in test_sdk_handlers.py."""

import pytest
from mcp.server.auth.provider import AuthorizationParams, RegistrationError, TokenError
from mcp.shared.auth import OAuthClientInformationFull

from tests.mcp.oauth.test_store import CLIENT, NOW
from toolserver.clock import SystemClock
from toolserver.mcp.oauth import memory_store
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore
from toolserver.mcp.oauth.records import hash_secret
from toolserver.mcp.oauth.sdk_provider import OAuthProvider


async def lives(child):
    return True


def provider(*uris):
    store = MemoryOAuthStore()
    return OAuthProvider(
        ClientDirectory(store, None), OAuthGrants(store, SystemClock(), is_live=lives), SystemClock(), uris
    )


def asked(**change):
    given = {"client_id": "client_2", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}
    return OAuthClientInformationFull.model_validate(given | {"redirect_uris": ["https://Host.example/Back"]} | change)


async def test_a_client_is_kept_with_its_addresses_as_it_wrote_them_and_its_secret_as_a_hash():
    made = provider("https://Host.example/Back")
    await made.register_client(asked(client_name="A\u202e host"))
    kept = await made._clients.store.find_client("client_2")
    assert (kept.name, kept.redirect_uris) == ("A host", ("https://Host.example/Back",))
    assert kept.secret_hash == hash_secret("s")
    shown = await made.get_client("client_2")
    assert (shown.client_secret, shown.secret_hash) == (None, hash_secret("s"))
    assert "secret_hash" not in shown.model_dump()
    assert await made.get_client("other") is None


async def test_no_client_is_registered_beyond_the_bound(monkeypatch):
    monkeypatch.setattr(memory_store, "MOST_CLIENTS", 1)
    made = provider("https://host.example/")
    await made._clients.store.add_client(CLIENT._replace(created_at=NOW * 2))
    with pytest.raises(RegistrationError):
        await made.register_client(asked())


async def test_what_is_not_asked_of_it_is_not_answered():
    made, client = provider(), asked()
    params = AuthorizationParams.model_construct()
    for call in (made.authorize(client, params), made.load_access_token("x"), made.revoke_token(None)):
        with pytest.raises(NotImplementedError):
            await call
    with pytest.raises(TokenError):
        await made.exchange_identity_assertion(client, None)
    assert await made.load_authorization_code(client, "x") is None
    assert await made.load_refresh_token(client, "x") is None
