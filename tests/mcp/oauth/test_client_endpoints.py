"""Addresses for programs: methods, limits, and readers of other origins."""

import pytest

from tests.mcp.oauth.served import BACK, REGISTER, RESOURCE, REVOKE, TOKEN, serving

DOCUMENTS = [f"/.well-known/oauth-{name}{RESOURCE}" for name in ("protected-resource", "authorization-server")]


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_documents_answer_get_head_and_options_for_every_origin(path):
    async with serving() as served:
        http = served.client.http
        found = await http.get(path)
        assert found.headers["content-type"] == "application/json"
        assert found.headers["access-control-allow-origin"] == "*"
        assert (await http.head(path)).headers["content-length"] == str(len(found.content))
        assert (await http.options(path)).status_code == 204
        assert (await http.post(path)).status_code == 405


@pytest.mark.parametrize("path", [TOKEN, REGISTER, REVOKE])
async def test_requests_of_programs_are_posts(path):
    async with serving() as served:
        http = served.client.http
        assert (await http.get(path)).status_code == 405
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
        assert int(late.headers["retry-after"]) >= 1
