"""Authorization requests: who is told what is wrong, and that a good one waits for a person."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.mcp.oauth.served import AUTHORIZE, BACK, serving
from toolserver.mcp.oauth.authorization import AuthorizationRequests
from toolserver.mcp.oauth.forms import OAuthParameters
from toolserver.mcp.oauth.records import ConsentRequest, hash_secret

EVIL = "https://evil.example/steal"


def told_client(answer):
    """What the redirect of a refused request tells the client."""
    assert answer.status_code == 303
    where, _, query = answer.headers["location"].partition("?")
    assert where == BACK
    return {name: values[0] for name, values in parse_qs(query).items()}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "x" * 42 + "="}, "invalid_request"),
        ({"code_challenge": "x" * 42}, "invalid_request"),
        ({"code_challenge": "x" * 44}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"resource": "https://other.example/api/mcp/auth"}, "invalid_target"),
        ({"resource": "https://data.example/api/mcp"}, "invalid_target"),
        ({"resource": "https://data.example/api/mcp/auth/x"}, "invalid_target"),
        ({"state": "x" * 4097}, "invalid_request"),
    ],
)
async def test_a_wrong_request_of_a_known_client_is_told_to_it_with_state_and_issuer(change, error):
    async with serving() as served:
        await served.client.register()
        told = told_client(await served.browser.visit(served.client.url(**change)))
        assert told["error"] == error
        assert told["iss"] == served.client.resource
        assert told.get("state") == (None if "state" in change else "st&ate")


@pytest.mark.parametrize(
    "change",
    [
        {"redirect_uri": EVIL},
        {"redirect_uri": None},
        {"redirect_uri": BACK + "/"},
        {"redirect_uri": BACK.replace("127.0.0.1", "localhost")},
        {"client_id": "00000000-0000-0000-0000-000000000000"},
        {"client_id": None},
        {"client_id": "https://data.internal/client"},
        {"client_id": "svc_live_" + "ca" * 32},
    ],
)
async def test_where_client_and_address_do_not_belong_together_nobody_is_redirected(change):
    async with serving() as served:
        await served.client.register()
        page = await served.browser.visit(served.client.url(**change))
        assert page.status_code == 400
        assert "location" not in page.headers
        assert "evil.example" not in page.text
        assert "svc_live_" not in page.text
        assert "set-cookie" not in page.headers


async def test_a_web_address_is_not_redirected_to_before_a_person_has_seen_it():
    async with serving() as served:
        await served.client.register(redirect_uris=[EVIL])
        page = await served.browser.visit(served.client.url(redirect_uri=EVIL, code_challenge=None))
        assert page.status_code == 400
        assert "location" not in page.headers
        assert f'<a href="{EVIL}?error=invalid_request' in page.text
        assert "Back to evil.example" in page.text


@pytest.mark.parametrize("query", ["client_id=a&client_id=b", "state=%ff", "&".join(f"a{n}=1" for n in range(99))])
async def test_a_request_that_cannot_be_read_is_refused(query):
    async with serving() as served:
        assert (await served.browser.visit(f"{AUTHORIZE}?{query}")).status_code == 400


async def test_a_program_on_this_device_may_be_answered_at_any_port():
    async with serving() as served:
        await served.client.register()
        uri = BACK.replace("3000", "51999")
        page = await served.browser.visit(served.client.url(redirect_uri=uri))
        assert "127.0.0.1:51999" in page.text
        answer = await served.browser.submit("deny")
        assert urlsplit(answer.headers["location"]).port == 51999


async def test_the_resource_may_be_left_out_or_carry_what_hosts_append():
    async with serving() as served:
        await served.client.register()
        for resource in (None, f"{served.client.resource}/", f"{served.client.resource}?toolset=all"):
            assert (await served.browser.visit(served.client.url(resource=resource))).status_code == 200


async def test_a_state_of_4096_characters_or_none_comes_back_as_it_was():
    async with serving() as served:
        await served.client.register()
        for state in ("x" * 4096, None):
            assert (await served.browser.visit(served.client.url(state=state))).status_code == 200
            told = told_client(await served.browser.submit("deny"))
            assert (told.get("state"), told["iss"]) == (state, served.client.resource)


async def test_a_request_is_kept_with_all_that_its_answer_needs():
    async with serving() as served:
        await served.client.register()
        given = OAuthParameters(served.client.asking)
        requests = AuthorizationRequests(served.service.oauth._clients, served.facts)
        secret, made = await requests.read(given, "cookie", 1000)
        assert made == ConsentRequest(
            *(hash_secret(secret), hash_secret("cookie"), served.client.id, "Test host", BACK, "st&ate"),
            *(given["code_challenge"], 1000, 1000 + 2 * 3600 * 1000),
        )
        assert len(secret) == 64
        answer = urlsplit(requests.answer(made, code="c"))
        assert parse_qs(answer.query) == {"code": ["c"], "state": ["st&ate"], "iss": [served.client.resource]}


async def test_an_address_with_a_query_keeps_it():
    async with serving() as served:
        uri = f"{BACK}?of=one&x"
        await served.client.register(redirect_uris=[uri])
        await served.browser.visit(served.client.url(redirect_uri=uri))
        answer = await served.browser.submit("deny")
        assert answer.headers["location"].startswith(f"{uri}&error=access_denied&")


async def test_more_requests_than_there_is_room_for_drop_the_oldest_of_the_greediest(monkeypatch):
    from toolserver.mcp.oauth import memory_store

    monkeypatch.setattr(memory_store, "MOST_REQUESTS", 3)
    async with serving(limited=True) as served:
        await served.client.register()
        page = await served.browser.visit(served.client.url())
        for network in ("2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1"):
            stranger = served.new_browser(network)
            for _ in range(4):
                assert (await stranger.visit(served.client.url())).status_code == 200
            await stranger.http.aclose()
        assert (await served.browser.visit(str(page.url))).status_code == 200
