"""Authorization requests and the pages that answer them: who learns of a fault, and that a page is for one browser."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from prometheus_client import generate_latest

from tests.mcp.oauth.served import AUTHORIZE, BACK, CONSENT, OWNER, REVOKE, START, answered, serving
from toolserver.core.caller import Addresses
from toolserver.mcp.oauth.authorization import AuthorizationRequests
from toolserver.mcp.oauth.clients import ClientDocumentsBusy
from toolserver.mcp.oauth.http import OAuthParameters
from toolserver.mcp.oauth.store import ConsentRequest, StoreLimits, hash_secret

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
        parameters = OAuthParameters(served.client.asking)
        requests = AuthorizationRequests(served.service.oauth.clients, served.facts, served.clock)
        secret, request = await requests.read(parameters, "cookie")
        now = int(START.timestamp() * 1000)
        assert request == ConsentRequest(
            id=hash_secret(secret),
            browser=hash_secret("cookie"),
            client_id=served.client.id,
            client_name="Test host",
            redirect_uri=BACK,
            state="st&ate",
            challenge=parameters["code_challenge"],
            created_at=now,
            expires_at=now + 2 * 3600 * 1000,
        )
        assert len(secret) == 64


async def test_an_address_with_a_query_keeps_it():
    async with serving() as served:
        uri = f"{BACK}?of=one&x"
        await served.client.register(redirect_uris=[uri])
        await served.browser.visit(served.client.url(redirect_uri=uri))
        answer = await served.browser.submit("deny")
        assert answer.headers["location"].startswith(f"{uri}&error=access_denied&")


async def test_more_requests_than_there_is_room_for_drop_the_oldest_of_the_greediest():
    async with serving(limited=True) as served:
        served.service.oauth.store.limits = StoreLimits(requests=3)
        await served.client.register()
        page = await served.browser.visit(served.client.url())
        for network in ("2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1"):
            stranger = served.new_browser(network)
            for _ in range(4):
                assert (await stranger.visit(served.client.url())).status_code == 200
            await stranger.http.aclose()
        assert (await served.browser.visit(str(page.url))).status_code == 200


async def at_page(served):
    await served.client.register()
    return await served.browser.visit(served.client.url())


async def test_the_page_cannot_be_framed_stored_or_scripted_from_elsewhere():
    async with serving() as served:
        page = await at_page(served)
        assert page.headers["x-frame-options"] == "DENY"
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self' http://127.0.0.1:3000" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        assert "<script" not in page.text
        assert "style=" not in page.text


async def test_the_cookie_is_for_this_host_alone_and_no_other_site_sends_it():
    async with serving() as served:
        await served.client.register()
        cookie = (await served.browser.http.get(served.client.url())).headers["set-cookie"]
        name, _, rest = cookie.partition("=")
        assert name == "__Host-toolserver-consent"
        assert rest.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"]
    async with serving(base_url="http://127.0.0.1:8080") as served:
        await served.client.register()
        cookie = (await served.browser.http.get(served.client.url())).headers["set-cookie"]
        assert cookie.startswith("toolserver-consent=")
        assert "Secure" not in cookie


async def test_a_page_of_another_browser_is_refused():
    async with serving() as served:
        page = await at_page(served)
        other = served.new_browser()
        assert (await other.visit(str(page.url))).status_code == 410
        await other.visit(served.client.url())
        assert (await other.visit(str(page.url))).status_code == 410
        other.page = page
        stolen = await other.submit("allow", token=OWNER)
        assert stolen.status_code == 409
        assert "another browser" in stolen.text
        assert not await served.allowances()
        await other.http.aclose()


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)
async def test_a_form_of_another_site_is_refused(headers):
    async with serving() as served:
        await at_page(served)
        sent = served.browser.fields("allow") | {"token": OWNER, "do": "allow"}
        answer = await served.browser.http.post(CONSENT, data=sent, headers=headers)
        assert answer.status_code == 403
        assert not await served.allowances()
        hidden = await served.browser.http.post(CONSENT, data=sent, headers={"origin": "null"})
        answered(hidden)


async def test_a_page_with_a_problem_is_sent_as_one_and_a_page_without_as_a_good_one():
    async with serving() as served:
        assert (await at_page(served)).status_code == 200
        refused = await served.browser.submit("allow", token="")
        assert refused.status_code == 422
        assert "Paste your token" in refused.text
        assert "form-action 'self' http://127.0.0.1:3000" in refused.headers["content-security-policy"]
        assert (await served.browser.submit("buy", amount_usd="2")).status_code == 200


async def test_a_browser_keeps_its_cookie_from_one_request_to_the_next():
    async with serving() as served:
        await served.client.register()
        cookies = [
            (await served.browser.http.get(served.client.url())).headers["set-cookie"].partition(";")[0]
            for _ in range(2)
        ]
        assert cookies[0] == cookies[1]
        served.browser.http.cookies.clear()
        forged = {"cookie": "__Host-toolserver-consent=short"}
        fresh = (await served.browser.http.get(served.client.url(), headers=forged)).headers["set-cookie"]
        assert len(fresh.partition(";")[0].partition("=")[2]) == 64
        assert fresh.partition(";")[0] != cookies[0]


async def test_methods_and_bodies_that_are_not_served():
    async with serving() as served:
        http = served.client.http
        for refused, allowed in (
            (await http.post(AUTHORIZE), "GET, HEAD"),
            (await http.delete(CONSENT), "GET, HEAD, POST"),
        ):
            assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
            assert refused.json() == {"error": "invalid_request", "error_description": f"Use {allowed}."}
        assert (await http.post(CONSENT, json={})).status_code == 400
        assert (await http.get(CONSENT)).status_code == 410
        assert (await http.head(AUTHORIZE)).content == b""


@pytest.mark.parametrize("do", ["allow", "deny"])
@pytest.mark.parametrize("uri", ["cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/back"])
async def test_an_app_is_opened_by_a_click_and_never_by_the_service(do, uri):
    async with serving() as served:
        await served.client.register(redirect_uris=[uri], client_name="Editor <b>")
        await served.browser.visit(served.client.url(redirect_uri=uri))
        page = await served.browser.submit(do, token=OWNER)
        assert page.status_code == 200
        assert "location" not in page.headers
        assert "<script" not in page.text
        assert 'http-equiv="refresh"' not in page.text
        assert page.headers["content-security-policy"].endswith("form-action 'self'")
        assert page.headers["cache-control"] == "no-store"
        (link,) = re.findall(r'<a class="main" href="([^"]+)" rel="noreferrer">', page.text)
        back = html.unescape(link)
        assert back.startswith(f"{uri}?")
        found = parse_qs(urlsplit(back).query)
        assert found["state"] == ["st&ate"]
        if do == "deny":
            assert found["error"] == ["access_denied"]
        else:
            tokens = await served.client.exchange(found["code"][0], redirect_uri=uri)
            assert tokens.status_code == 200, tokens.text


async def test_a_fault_is_told_to_an_app_by_a_click_too():
    uri = "cursor://x/y"
    async with serving() as served:
        await served.client.register(redirect_uris=[uri])
        page = await served.browser.http.get(served.client.url(redirect_uri=uri, code_challenge_method="plain"))
        assert page.status_code == 400
        assert "location" not in page.headers
        assert 'href="cursor://x/y?error=invalid_request' in page.text


@pytest.mark.parametrize("more", ["\r", "\n", "\t", "\r\nx: y", "#", "?", "é", " "], ids=ascii)
@pytest.mark.parametrize("fault", [{}, {"code_challenge_method": "plain"}], ids=["good", "bad"])
async def test_an_address_with_something_that_a_parser_would_drop_is_refused_to_the_person(more, fault):
    async with serving() as served:
        await served.client.register(redirect_uris=["http://localhost", BACK])
        for uri in (f"http://localhost{more}", BACK + more, more + BACK):
            page = await served.browser.http.get(served.client.url(redirect_uri=uri, **fault))
            assert page.status_code == 400, uri
            assert "has not registered" in page.text


async def test_visits_of_an_address_are_limited():
    async with serving(limited=True) as served:
        await served.client.register()
        codes = [(await served.client.http.get(served.client.url())).status_code for _ in range(61)]
        assert codes == [303] * 60 + [429]
        codes = [(await served.client.http.get(CONSENT)).status_code for _ in range(121)]
        assert codes[-2:] == [410, 429]
        late = await served.client.http.get(served.client.url())
        assert late.headers["retry-after"] == "1"
        assert "Too many requests from this address. Try again in 1 s." in late.text
        elsewhere = served.new_browser("198.51.100.7")
        assert (await elsewhere.http.get(served.client.url())).status_code == 303
        served.clock.advance(1)
        assert (await served.client.http.get(served.client.url())).status_code == 303


async def test_wrong_tokens_on_the_page_count_like_wrong_tokens_anywhere():
    async with serving(limited=True) as served:
        await at_page(served)
        pages = [await served.browser.submit("allow", token=f"svc_live_{n:064x}") for n in range(31)]
        assert "Too many unknown tokens" in pages[-1].text
        assert "malformed or unknown" in pages[-2].text


async def test_what_a_person_pastes_is_in_no_url_and_no_log(caplog):
    caplog.set_level("DEBUG")
    async with serving() as served:
        await at_page(served)
        for token in ("svc_live_" + "ca" * 32, OWNER):
            answer = await served.browser.submit("allow", token=token)
            assert token not in answer.headers.get("location", "")
            assert token not in answer.text
        metrics = generate_latest(served.service.metrics.registry)
        for token in ("ca" * 32, OWNER):
            assert token not in caplog.text
            assert token.encode() not in metrics


async def test_visits_of_a_wider_network_are_limited_together():
    async with serving(limited=True) as served:
        await served.client.register()
        codes = []
        for n in range(17):
            browser = served.new_browser(f"2001:db8:0:{n:x}::1")
            codes += [(await browser.http.get(served.client.url())).status_code for _ in range(60)]
            await browser.http.aclose()
        assert codes == [303] * 960 + [429] * 60


async def test_who_exceeds_its_share_of_documents_is_told_when_to_come_again():
    async with serving(limited=True) as served:

        async def find(url, caller=None):
            raise ClientDocumentsBusy(f"busy for {caller}")

        served.service.oauth.clients.documents.find = find
        page = await served.client.http.get(served.client.url(client_id="https://host.example/c"))
        assert (page.status_code, page.headers["retry-after"]) == (503, "5")
        assert "busy for 127.0.0.1" in page.text
        tokens = await served.client.exchange("code", client_id="https://host.example/c")
        assert (tokens.status_code, tokens.headers["retry-after"]) == (503, "5")
        assert tokens.json() == {"error": "temporarily_unavailable", "error_description": "busy for 127.0.0.1"}
        revoked = await served.client.http.post(REVOKE, data={"token": "x", "client_id": "https://host.example/c"})
        assert revoked.status_code == 503


async def test_a_document_is_read_no_longer_when_the_browser_has_left():
    ended = anyio.Event()
    async with serving() as served:

        async def find(url, caller=None):
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        served.service.oauth.clients.documents.find = find
        path, _, query = served.client.url(client_id="https://host.example/c").partition("?")
        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
        sent = []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(event):
            sent.append(event)

        pages = served.service.oauth.mount(None, None, Addresses([]))[AUTHORIZE].__self__
        with anyio.fail_after(10):
            await pages.authorize(scope, receive, send)
            await ended.wait()
        assert sent == []
