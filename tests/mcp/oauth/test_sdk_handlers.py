"""Token, registration and revocation requests: what each refuses, and that no answer repeats a value."""

import base64

import pytest

from tests.mcp.oauth.served import BACK, OWNER, REGISTER, REVOKE, TOKEN, serving


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
