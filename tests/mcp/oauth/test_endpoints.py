"""What programs call: `/api/mcp/auth` behind an access token, the metadata documents, and the limits of them all."""

import json
import re

import pytest

from tests.mcp.oauth.served import BACK, OWNER, REGISTER, RESOURCE, REVOKE, TOKEN, serving
from tests.mcp.service import asked
from tests.requirements import proves
from toolserver.errors import BillingUnavailable
from toolserver.settings import LimitSettings

LISTED = asked("tools/list")


@proves("oauth.401")
@pytest.mark.parametrize(
    "token",
    ["", "Basic abc", f"Bearer {OWNER}", "Bearer svc_access_" + "0" * 64, "Bearer x", "Bearer svc_refresh_" + "0" * 64],
)
async def test_without_a_valid_access_token_it_answers_401_and_says_where_to_get_one(token):
    async with serving() as served:
        headers = {"authorization": token} if token else {}
        for method in ("POST", "GET", "DELETE"):
            answer = await served.client.http.request(method, RESOURCE, json=LISTED, headers=headers)
            assert answer.status_code == 401
            challenge = answer.headers["www-authenticate"]
            assert (
                f'resource_metadata="{served.facts.base_url}/.well-known/oauth-protected-resource{RESOURCE}"'
                in challenge
            )
            assert ('error="invalid_token"' in challenge) == bool(token)
            assert "www-authenticate" in answer.headers["access-control-expose-headers"]
            assert "svc_" not in answer.text + challenge


async def test_two_tokens_are_none():
    async with serving() as served:
        await served.connect()
        headers = [("authorization", f"Bearer {served.client.tokens['access_token']}")] * 2
        assert (await served.client.http.post(RESOURCE, json=LISTED, headers=headers)).status_code == 401


async def test_a_browser_may_ask_first_without_a_token():
    async with serving() as served:
        answer = await served.client.http.options(RESOURCE)
        assert answer.status_code == 204
        assert "authorization" in answer.headers["access-control-allow-headers"]


def without_credits(text: str) -> str:
    """An answer without the credits left, which are those of the allowance here and of its owner there."""
    return re.sub(r'credits_remaining(\\?": ?)\d+', r"credits_remaining\1", text)


async def test_with_one_it_answers_as_the_open_endpoint_does():
    async with serving() as served:
        await served.connect()
        owner = {"authorization": f"Bearer {OWNER}"}
        mine = {"authorization": f"Bearer {served.client.tokens['access_token']}"}
        calls = [LISTED, asked("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})]
        calls += [
            asked("tools/call", {"name": "word", "arguments": {}}),
            asked("nothing"),
            asked("tools/call", {"name": "no"}),
        ]
        for message in calls:
            there = await served.client.http.post("/api/mcp", json=message, headers=owner)
            here = await served.client.http.post(RESOURCE, json=message, headers=mine)
            assert (here.status_code, without_credits(here.text)) == (there.status_code, without_credits(there.text))
        assert (await served.client.http.get(RESOURCE, headers=mine)).status_code == 200


@proves("oauth.allowance")
async def test_an_access_token_is_worth_nothing_anywhere_else():
    async with serving() as served:
        await served.connect()
        result = (await served.client.call("oracle", path="/api/mcp")).json()["result"]
        assert json.loads(result["content"][0]["text"])["error"] == "invalid_token"
        headers = {"authorization": f"Bearer {served.client.tokens['access_token']}"}
        assert (await served.client.http.get("/api/pro/oracle", headers=headers)).status_code == 402


async def test_it_expires_after_an_hour():
    async with serving() as served:
        await served.connect()
        assert (await served.client.call("word")).status_code == 200
        served.clock.advance(3599)
        assert (await served.client.call("word")).status_code == 200
        served.clock.advance(1)
        assert (await served.client.call("word")).status_code == 401


@proves("oauth.allowance")
async def test_an_allowance_that_its_owner_ends_ends_the_access_with_it():
    async with serving() as served:
        await served.connect()
        assert (await served.client.call("word")).status_code == 200
        (made,) = await served.allowances()
        headers = {"authorization": f"Bearer {OWNER}"}
        await served.client.http.delete(f"/api/payment/allowances/{made.id}", headers=headers)
        refused = await served.client.call("word")
        assert refused.status_code == 401
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]


@proves("oauth.allowance")
async def test_a_cap_that_is_reached_is_a_result_and_not_401():
    async with serving() as served:
        await served.allow(credits="3")
        served.client.id = ""
        code = (await served.allow(credits="3"))["code"]
        await served.client.exchange(code)
        assert (await served.client.call("oracle")).json()["result"]["isError"] is False
        refused = await served.client.call("oracle")
        assert refused.status_code == 200
        told = json.loads(refused.json()["result"]["content"][0]["text"])
        assert (told["error"], told["cap"]) == ("insufficient_credits", "credits")


async def test_while_the_ledger_is_away_free_tools_are_answered():
    async with serving() as served:
        await served.connect()
        assert (await served.client.call("word")).status_code == 200

        async def away(token):
            raise BillingUnavailable("away")

        served.service.oauth.grants.is_live = away
        assert (await served.client.call("word")).status_code == 200


async def test_a_token_is_looked_up_again_after_ten_seconds():
    async with serving() as served:
        await served.connect()
        grants, opened = served.service.oauth.grants, []
        open_access = grants.open_access

        async def counted(secret):
            opened.append(secret)
            return await open_access(secret)

        grants.open_access = counted
        for _ in range(3):
            await served.client.call("word")
        assert len(opened) == 1
        served.clock.advance(9.999)
        await served.client.call("word")
        assert len(opened) == 1
        served.clock.advance(0.001)
        await served.client.call("word")
        assert len(opened) == 2


async def test_invented_tokens_are_limited_and_shut_out_nobody_who_is_known():
    async with serving(limited=True) as served:
        await served.connect()
        assert (await served.client.call("payment_balance")).status_code == 200
        codes = [(await served.client.call("word", token=f"svc_access_{n:064x}")).status_code for n in range(61)]
        assert codes == [401] * 60 + [429]
        refused = await served.client.call("word", token="svc_access_" + "0" * 64)
        assert refused.headers["retry-after"] == "60"
        assert refused.json()["error"]["message"] == "Too many unknown access tokens from this address."
        assert "www-authenticate" not in refused.headers
        assert (await served.client.call("payment_balance")).status_code == 200


async def test_behind_a_proxy_invented_tokens_are_counted_by_who_sent_them():
    limits = LimitSettings(trusted_proxies=["127.0.0.1/32"])
    async with serving(limits=limits) as served:

        async def invent(number, client):
            headers = {"authorization": f"Bearer svc_access_{number:064x}", "x-forwarded-for": client}
            return (await served.client.http.post(RESOURCE, json=LISTED, headers=headers)).status_code

        codes = [await invent(n, "198.51.100.1") for n in range(61)]
        assert codes == [401] * 60 + [429]
        assert await invent(61, "198.51.100.2") == 401


async def test_without_limits_invented_tokens_are_not_counted():
    async with serving() as served:
        codes = {(await served.client.call("word", token=f"svc_access_{n:064x}")).status_code for n in range(61)}
        assert codes == {401}


async def test_a_refusal_to_a_head_request_has_no_body():
    async with serving() as served:
        refused = await served.client.http.head(RESOURCE)
        assert (refused.status_code, refused.content) == (401, b"")


DOCUMENTS = [f"/.well-known/oauth-{name}{RESOURCE}" for name in ("protected-resource", "authorization-server")]


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_documents_answer_get_head_and_options_for_every_origin(path):
    async with serving() as served:
        http = served.client.http
        found = await http.get(path)
        assert found.headers["content-type"] == "application/json"
        assert found.headers["access-control-allow-origin"] == "*"
        assert (await http.head(path)).headers["content-length"] == str(len(found.content))
        preflight = await http.options(path)
        assert (preflight.status_code, preflight.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
        refused = await http.post(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        assert refused.json() == {"error": "invalid_request", "error_description": "Use GET."}


@pytest.mark.parametrize("path", [TOKEN, REGISTER, REVOKE])
async def test_requests_of_programs_are_posts(path):
    async with serving() as served:
        http = served.client.http
        refused = await http.get(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST, OPTIONS")
        assert refused.json() == {"error": "invalid_request", "error_description": "Use POST."}
        preflight = await http.options(path)
        assert (preflight.status_code, preflight.headers["access-control-allow-methods"]) == (204, "POST, OPTIONS")
        answer = await http.post(path, content=b"x")
        assert answer.status_code == 400
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["cache-control"] == "no-store"


async def test_registrations_and_token_requests_of_an_address_are_limited():
    async with serving(limited=True) as served:
        codes = [(await served.client.register()).status_code for _ in range(31)]
        assert codes == [201] * 30 + [429]
        elsewhere = served.new_browser("198.51.100.7").http
        assert (await elsewhere.post(REGISTER, json={"redirect_uris": [BACK]})).status_code == 201
        codes = [(await served.client.http.post(TOKEN, data={"a": "b"})).status_code for _ in range(601)]
        assert codes[-2:] == [400, 429]
        late = await served.client.http.post(REVOKE, data={"a": "b"})
        assert late.status_code == 429
        assert int(late.headers["retry-after"]) == 1
        told = {"error": "temporarily_unavailable"}
        assert late.json() == told | {"error_description": "Too many token requests from this address."}
        again = await served.client.register()
        assert again.headers["retry-after"] == "2"
        assert again.json() == told | {"error_description": "Too many registrations from this address."}
        served.clock.advance(2)
        assert (await served.client.register()).status_code == 201


async def test_a_service_without_limits_counts_nothing():
    async with serving() as served:
        codes = {(await served.client.http.post(REGISTER, json={})).status_code for _ in range(31)}
        assert codes == {400}
