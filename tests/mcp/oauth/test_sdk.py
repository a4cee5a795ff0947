"""Token, registration and revocation requests: what each refuses and stores, and that no answer repeats a value."""

import base64
from types import SimpleNamespace

import pytest
from mcp.server.auth.middleware.client_auth import AuthenticationError
from mcp.server.auth.provider import AuthorizationParams, RegistrationError, TokenError
from mcp.shared.auth import OAuthClientInformationFull

from tests.mcp.oauth.records import CHILD, CLIENT, NOW, REQUEST, change
from tests.mcp.oauth.served import BACK, OWNER, REGISTER, REVOKE, TOKEN, serving
from toolserver.calls.visitor_tokens import VisitorTokens
from toolserver.clock import SystemClock
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.sdk import HashedClientAuthenticator, OAuthProvider
from toolserver.mcp.oauth.store import DAY_MS, MemoryOAuthStore, StoreLimits, hash_secret


async def refusal(answer, status=400):
    assert answer.status_code == status, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers.get("www-authenticate") == ('Basic realm="oauth"' if status == 401 else None)
    assert "svc_" not in answer.text
    return answer.json()["error"]


async def test_a_code_is_exchanged_by_who_has_the_verifier_once():
    async with serving() as served:
        code = (await served.allow())["code"]
        client = served.client
        assert await refusal(await client.exchange(code, code_verifier="x" * 43)) == "invalid_grant"
        assert await refusal(await client.exchange(code, code_verifier=None)) == "invalid_request"
        assert await refusal(await client.exchange(code, redirect_uri=BACK + "/")) == "invalid_request"
        assert await refusal(await client.exchange(code, redirect_uri=None)) == "invalid_request"
        assert await refusal(await client.exchange(code, resource="https://other.example/")) == "invalid_target"
        assert await refusal(await client.exchange(code, client_id="other"), 401) == "invalid_client"
        assert (await client.exchange(code)).status_code == 200
        tokens = dict(client.tokens)
        assert await refusal(await client.exchange(code)) == "invalid_grant"
        assert (await client.call("word", token=tokens["access_token"])).status_code == 401
        (made,) = await served.allowances()
        assert made.revoked_at is not None


async def test_a_code_of_another_client_is_worth_nothing():
    async with serving() as served:
        code = (await served.allow())["code"]
        mine = served.client.id
        await served.client.register()
        assert await refusal(await served.client.exchange(code)) == "invalid_grant"
        assert (await served.client.exchange(code, client_id=mine)).status_code == 200


async def test_a_code_expires_after_a_minute():
    async with serving() as served:
        code = (await served.allow())["code"]
        served.clock.advance(60)
        assert await refusal(await served.client.exchange(code)) == "invalid_grant"


async def test_refreshing_rotates_and_a_second_use_ends_it_all():
    async with serving() as served:
        client = served.client
        await served.connect()
        first = dict(client.tokens)
        assert (await client.refresh(scope="anything", resource=client.resource)).status_code == 200
        second = dict(client.tokens)
        assert second["refresh_token"] != first["refresh_token"]
        assert (await client.call("word")).status_code == 200
        assert await refusal(await client.refresh(resource="https://other.example/")) == "invalid_target"
        assert await refusal(await client.refresh(refresh_token=first["refresh_token"])) == "invalid_grant"
        assert await refusal(await client.refresh(refresh_token=second["refresh_token"])) == "invalid_grant"
        assert (await client.call("word", token=second["access_token"])).status_code == 401


async def test_an_ended_allowance_ends_the_refreshing():
    async with serving() as served:
        await served.connect()
        (made,) = await served.allowances()
        await served.ledger.revoke_allowance(OWNER, made.id)
        assert await refusal(await served.client.refresh()) == "invalid_grant"


@pytest.mark.parametrize("grant_type", [None, "password", "client_credentials", "svc_live_" + "ca" * 32])
async def test_other_grants_are_refused(grant_type):
    async with serving() as served:
        await served.client.register()
        given = {"client_id": served.client.id} | ({} if grant_type is None else {"grant_type": grant_type})
        assert await refusal(await served.client.http.post(TOKEN, data=given)) == "unsupported_grant_type"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"redirect_uris": []}, "invalid_client_metadata"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://host.example/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"https://host.example/{n}" for n in range(30)]}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://host.example/"}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
    ],
)
async def test_registrations_that_are_refused(change, error):
    async with serving() as served:
        assert await refusal(await served.client.register(**change)) == error


@pytest.mark.parametrize("body", [b"", b"[]", b"[" * 9000, b"\xff", b"x" * 20_000])
async def test_a_registration_that_cannot_be_read(body):
    async with serving() as served:
        answer = await served.client.http.post(REGISTER, content=body)
        assert await refusal(answer) == "invalid_client_metadata"


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
async def test_a_client_with_a_secret_has_to_send_it(method):
    async with serving() as served:
        client = served.client
        registered = (await client.register(token_endpoint_auth_method=method)).json()
        secret = registered["client_secret"]
        assert registered["token_endpoint_auth_method"] == method
        code = (await served.allow())["code"]
        assert await refusal(await client.exchange(code), 401) == "invalid_client"
        assert await refusal(await client.exchange(code, client_secret="x"), 401) == "invalid_client"
        if method == "client_secret_post":
            assert (await client.exchange(code, client_secret=secret)).status_code == 200
        else:
            pair = base64.b64encode(f"{client.id}:{secret}".encode()).decode()
            client.http.headers["authorization"] = f"Basic {pair}"
            assert (await client.exchange(code, client_id=None)).status_code == 200


async def test_revoking_ends_tokens_and_allowance_at_once_and_is_quiet_about_others():
    async with serving() as served:
        await served.connect()
        client, token = served.client, served.client.tokens["access_token"]
        assert (await client.call("word")).status_code == 200
        await_other = await client.http.post(REVOKE, data={"token": token, "client_id": "other"})
        assert await refusal(await_other, 401) == "invalid_client"
        assert (await client.revoke("svc_access_" + "0" * 64)).status_code == 200
        assert (await client.call("word")).status_code == 200
        assert await refusal(await client.http.post(REVOKE, data={"client_id": client.id})) == "invalid_request"
        assert (await client.revoke(client.tokens["refresh_token"])).status_code == 200
        assert (await client.call("word")).status_code == 401
        (made,) = await served.allowances()
        assert made.revoked_at is not None


async def lives(child):
    return True


class Sdk:
    """A provider with its store and grants."""

    def __init__(self, *uris, **limits):
        clock = SystemClock()
        self.store = MemoryOAuthStore(StoreLimits(**limits))
        self.grants = OAuthGrants(self.store, clock, VisitorTokens(None, clock), is_live=lives)
        self.provider = OAuthProvider(ClientDirectory(self.store, None), self.grants, clock, uris)


def asked(**change):
    given = {"client_id": "client_2", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}
    return OAuthClientInformationFull.model_validate(given | {"redirect_uris": ["https://Host.example/Back"]} | change)


async def test_a_client_is_kept_with_its_addresses_as_it_wrote_them_and_its_secret_as_a_hash():
    sdk = Sdk("https://Host.example/Back")
    await sdk.provider.register_client(asked(client_name="A\u202e host"))
    stored = await sdk.store.find_client("client_2")
    assert (stored.name, stored.redirect_uris) == ("A host", ("https://Host.example/Back",))
    assert stored.secret_hash == hash_secret("s")
    shown = await sdk.provider.get_client("client_2")
    assert (shown.client_secret, shown.secret_hash) == (None, hash_secret("s"))
    assert "secret_hash" not in shown.model_dump()
    assert await sdk.provider.get_client("other") is None


async def test_no_client_is_registered_beyond_the_bound():
    sdk = Sdk("https://host.example/", clients=1)
    await sdk.store.add_client(change(CLIENT, created_at=NOW * 2, used_at=NOW * 2))
    with pytest.raises(RegistrationError):
        await sdk.provider.register_client(asked())


async def test_what_is_not_asked_of_it_is_not_answered():
    sdk, client = Sdk(), asked()
    params = AuthorizationParams.model_construct()
    for call in (
        sdk.provider.authorize(client, params),
        sdk.provider.load_access_token("x"),
        sdk.provider.revoke_token(None),
    ):
        with pytest.raises(NotImplementedError):
            await call
    with pytest.raises(TokenError):
        await sdk.provider.exchange_identity_assertion(client, None)
    assert await sdk.provider.load_authorization_code(client, "x") is None
    assert await sdk.provider.load_refresh_token(client, "x") is None


async def test_a_client_may_have_twenty_addresses_and_each_must_be_one_that_a_browser_may_be_sent_to():
    uris = [f"https://host.example/{n}" for n in range(21)]
    sdk = Sdk(*uris[:20])
    await sdk.provider.register_client(asked())
    assert (await sdk.store.find_client("client_2")).redirect_uris == tuple(uris[:20])
    for wrong, said in ((uris, "at most 20"), (["http://host.example/"], "must use https")):
        with pytest.raises(RegistrationError) as refused:
            await Sdk(*wrong).provider.register_client(asked())
        assert refused.value.error == "invalid_redirect_uri"
        assert said in refused.value.error_description


async def test_a_client_without_a_secret_a_name_or_a_method_is_public_and_nameless():
    sdk = Sdk("https://host.example/")
    await sdk.provider.register_client(asked(client_secret=None, token_endpoint_auth_method=None, client_name="\u202e"))
    stored = await sdk.store.find_client("client_2")
    assert (stored.name, stored.auth_method, stored.secret_hash) == ("An app without a name", "none", None)
    assert (stored.used_at, stored.document) == (None, False)


def request_with(**form):
    """A request with this form; what is bytes is sent as a file."""

    async def read():
        return form

    return SimpleNamespace(form=read)


async def authenticated(secret_hash, **form):
    sdk = Sdk()
    await sdk.store.add_client(change(CLIENT, secret_hash=secret_hash))
    return (await HashedClientAuthenticator(sdk.provider).authenticate_request(request_with(**form))).client_id


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
    sdk, client = Sdk(), asked(client_id="client_1")
    await sdk.store.add_request(REQUEST)
    now = SystemClock().time() * 1000
    code = await sdk.grants.allow(REQUEST, CHILD, int(now) + DAY_MS)
    assert await sdk.provider.load_authorization_code(asked(), code) is None
    shown = await sdk.provider.load_authorization_code(client, code)
    assert (shown.code, shown.client_id, shown.code_challenge) == (code, "client_1", "challenge")
    assert (str(shown.redirect_uri), shown.redirect_uri_provided_explicitly) == (REQUEST.redirect_uri, True)
    assert shown.expires_at == float("inf")
    tokens = await sdk.provider.exchange_authorization_code(client, shown)
    assert (tokens.token_type, tokens.expires_in) == ("Bearer", 3600)
    assert tokens.access_token.startswith("svc_access_")

    assert await sdk.provider.load_refresh_token(asked(), tokens.refresh_token) is None
    known = await sdk.provider.load_refresh_token(client, tokens.refresh_token)
    assert (known.token, known.client_id, known.scopes) == (tokens.refresh_token, "client_1", [])
    more = await sdk.provider.exchange_refresh_token(client, known, [])
    assert more.refresh_token not in (None, tokens.refresh_token)
    with pytest.raises(TokenError, match="invalid_grant"):
        await sdk.provider.exchange_refresh_token(client, known, [])
    with pytest.raises(TokenError, match="invalid_grant"):
        await sdk.provider.exchange_authorization_code(client, shown)
