"""Clients and grants in the SDK's words. The whole way is in test_sdk_handlers.py."""

from types import SimpleNamespace

import pytest
from mcp.server.auth.middleware.client_auth import AuthenticationError
from mcp.server.auth.provider import AuthorizationParams, RegistrationError, TokenError
from mcp.shared.auth import OAuthClientInformationFull

from tests.mcp.oauth.store_contract import CHILD, CLIENT, NOW, REQUEST
from toolserver.clock import SystemClock
from toolserver.mcp.oauth import memory_store
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore
from toolserver.mcp.oauth.records import DAY_MS, hash_secret
from toolserver.mcp.oauth.sdk_provider import HashedClientAuthenticator, OAuthProvider


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
    await made._clients.store.add_client(CLIENT._replace(created_at=NOW * 2, used_at=NOW * 2))
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


async def test_a_client_may_have_twenty_addresses_and_each_must_be_one_that_a_browser_may_be_sent_to():
    uris = [f"https://host.example/{n}" for n in range(21)]
    made = provider(*uris[:20])
    await made.register_client(asked())
    assert (await made._clients.store.find_client("client_2")).redirect_uris == tuple(uris[:20])
    for wrong, said in ((uris, "at most 20"), (["http://host.example/"], "must use https")):
        with pytest.raises(RegistrationError) as refused:
            await provider(*wrong).register_client(asked())
        assert refused.value.error == "invalid_redirect_uri"
        assert said in refused.value.error_description


async def test_a_client_without_a_secret_a_name_or_a_method_is_public_and_nameless():
    made = provider("https://host.example/")
    await made.register_client(asked(client_secret=None, token_endpoint_auth_method=None, client_name="\u202e"))
    kept = await made._clients.store.find_client("client_2")
    assert (kept.name, kept.auth_method, kept.secret_hash) == ("An app without a name", "none", None)
    assert (kept.used_at, kept.document) == (None, False)


def request_with(**form):
    """A request with this form; what is bytes is sent as a file."""

    async def read():
        return form

    return SimpleNamespace(form=read)


async def authenticated(secret_hash, **form):
    made = provider()
    await made._clients.store.add_client(CLIENT._replace(secret_hash=secret_hash))
    return (await HashedClientAuthenticator(made).authenticate_request(request_with(**form))).client_id


async def test_a_client_with_a_secret_is_known_by_it_and_one_without_by_its_id():
    assert await authenticated(hash_secret("s"), client_id="client_1", client_secret="s") == "client_1"
    assert await authenticated(None, client_id="client_1") == "client_1"
    assert await authenticated(None, client_id="client_1", client_secret="any") == "client_1"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"client_id": "client_1"}, "secret is missing or wrong"),
        ({"client_id": "client_1", "client_secret": "t"}, "secret is missing or wrong"),
        ({"client_id": "client_1", "client_secret": b"s"}, "secret is missing or wrong"),
        ({"client_id": "client_3", "client_secret": "s"}, "not registered"),
        ({"client_id": b"client_1", "client_secret": "s"}, "not registered"),
        ({}, "not registered"),
    ],
)
async def test_nobody_else_is_a_client_with_a_secret(form, said):
    with pytest.raises(AuthenticationError, match=said):
        await authenticated(hash_secret("s"), **form)


async def test_a_code_and_a_refresh_token_are_shown_to_their_client_and_exchanged_once():
    made, client = provider(), asked(client_id="client_1")
    await made._clients.store.add_request(REQUEST)
    now = SystemClock().time() * 1000
    code = await made._grants.allow(REQUEST, CHILD, int(now) + DAY_MS)
    assert await made.load_authorization_code(asked(), code) is None
    shown = await made.load_authorization_code(client, code)
    assert (shown.code, shown.client_id, shown.code_challenge) == (code, "client_1", "challenge")
    assert (str(shown.redirect_uri), shown.redirect_uri_provided_explicitly) == (REQUEST.redirect_uri, True)
    assert shown.expires_at == float("inf")
    tokens = await made.exchange_authorization_code(client, shown)
    assert (tokens.token_type, tokens.expires_in) == ("Bearer", 3600)
    assert tokens.access_token.startswith("svc_access_")

    assert await made.load_refresh_token(asked(), tokens.refresh_token) is None
    known = await made.load_refresh_token(client, tokens.refresh_token)
    assert (known.token, known.client_id, known.scopes) == (tokens.refresh_token, "client_1", [])
    more = await made.exchange_refresh_token(client, known, [])
    assert more.refresh_token not in (None, tokens.refresh_token)
    with pytest.raises(TokenError, match="invalid_grant"):
        await made.exchange_refresh_token(client, known, [])
    with pytest.raises(TokenError, match="invalid_grant"):
        await made.exchange_authorization_code(client, shown)
