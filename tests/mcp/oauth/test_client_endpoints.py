"""Addresses for programs: methods, limits, and readers of other origins."""

import pytest

from tests.mcp.oauth.served import BACK, REGISTER, RESOURCE, REVOKE, TOKEN, serving
from toolserver.mcp.oauth import client_endpoints

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


def test_programs_may_register_so_often_and_ask_for_tokens_so_often():
    quotas = (client_endpoints.REGISTRATIONS, client_endpoints.REGISTRATIONS_A_DAY, client_endpoints.TOKENS)
    assert [(each.quota, each.window_s) for each in quotas] == [(30, 60), (2000, 86_400), (600, 60)]
