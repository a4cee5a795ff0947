"""OAuth as a whole: the way from 401 to a paid answer, and when there is none."""

import json

import anyio
import anyio.lowlevel
import pytest
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from tests.arranged import arrange_settings
from tests.mcp.oauth.records import REQUEST, change
from tests.mcp.oauth.served import ALLOWANCES, BACK, BOUGHT, NAMES, OWNER, RESOURCE, START, TX, answered, serving
from tests.mcp.service import asked
from tests.requirements import proves
from tests.webhooks.receivers import receiving, status
from toolserver.errors import PaymentPending
from toolserver.mcp.oauth.service import SWEEP_S, find_reason_against, open_oauth
from toolserver.mcp.oauth.store import MemoryOAuthStore, SqlOAuthStore
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import OAuthSettings, WebhookSettings
from toolserver.sql.sqlite import durable


def told(answer):
    result = answer.json()["result"]
    return json.loads(result["content"][0]["text"]) | {"failed": result["isError"]}


@proves("oauth.metadata", "oauth.allowance")
async def test_from_401_to_a_paid_answer_with_a_token_that_the_person_pastes():
    async with serving() as served:
        client = served.client
        refused = await client.http.post(RESOURCE, json=asked("tools/list"))
        assert refused.status_code == 401
        challenge = refused.headers["www-authenticate"]
        address = challenge.removeprefix('Bearer resource_metadata="').removesuffix('"')
        resource = ProtectedResourceMetadata.model_validate((await client.http.get(address)).json())
        assert str(resource.resource) == client.resource
        issuer = str(resource.authorization_servers[0])
        found = await client.http.get("/.well-known/oauth-authorization-server" + RESOURCE)
        server = OAuthMetadata.model_validate(found.json())
        assert str(server.issuer) == issuer == client.resource
        registered = await client.register()
        assert registered.status_code == 201
        assert registered.json()["redirect_uris"] == [BACK]
        page = await served.browser.visit(client.url())
        assert page.status_code == 200
        assert "Test host" in page.text
        assert "a program on this device (127.0.0.1:3000)" in page.text
        answer = answered(await served.browser.submit("allow", token=f" {OWNER}\n"))
        assert answer.keys() == {"code", "state", "iss"}
        assert (answer["state"], answer["iss"]) == ("st&ate", client.resource)
        tokens = (await client.exchange(answer["code"])).json()
        assert tokens.keys() == {"access_token", "token_type", "expires_in", "refresh_token"}
        assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
        assert told(await client.call("oracle"))["_meta"]["credits_remaining"] == 248
        assert told(await client.call("payment_balance"))["credits"] == 248
        (made,) = await served.allowances()
        assert (made.name, made.credits, made.spent) == (
            "Test host (a program on this device (127.0.0.1:3000))",
            250,
            2,
        )
        assert made.expires_at == int(START.timestamp() * 1000) + 30 * 86_400_000
        assert await served.ledger.balance(OWNER) == 998


async def test_buying_on_the_page_ends_in_the_same_way():
    async with serving() as served:
        waits = PaymentPending("not yet", confirmations=1, required=3)
        served.sales.outcomes = [PaymentPending("not seen"), waits, 100]
        await served.client.register()
        browser = served.browser
        await browser.visit(served.client.url())
        page = await browser.submit("buy", amount_usd="2")
        assert "2 USDC" in page.text
        assert "<svg" in page.text
        assert f"0x{'0' * 36}1234" in page.text
        await browser.ask_for_hash()
        page = await browser.submit("paid", tx_hash=TX)
        assert "Looking for the transaction" in page.text
        page = await browser.reload()
        assert "Looking for the transaction" in page.text
        page = await browser.reload()
        assert "1 of 3 confirmations" in page.text
        page = await browser.reload()
        assert BOUGHT in page.text
        assert browser.fields("allow")["credits"] == "100"
        assert (await browser.visit(str(page.url))).text == page.text
        code = answered(await browser.submit("allow", credits="40", days="7"))["code"]
        await served.client.exchange(code)
        assert told(await served.client.call("payment_balance"))["credits"] == 40
        (made,) = await served.ledger.list_allowances(BOUGHT)
        assert (made.credits, made.expires_at) == (40, int(START.timestamp() * 1000) + 7 * 86_400_000)


@pytest.mark.parametrize(
    ("facts", "names", "settings", "reason"),
    [
        ({"sales": None}, NAMES + ALLOWANCES, {}, "sells nothing"),
        ({}, NAMES, {}, "no allowances"),
        ({"base_url": "http://data.example"}, NAMES + ALLOWANCES, {}, "needs https"),
        ({}, NAMES + ALLOWANCES, {"oauth": OAuthSettings(enabled=False)}, "switched off"),
    ],
)
async def test_where_there_is_no_oauth_the_address_says_why(facts, names, settings, reason):
    from tests.arranged import FACTS
    from toolserver.registry.site_facts import Sales

    given = {"base_url": FACTS.base_url, "source": FACTS.source, "sales": Sales()} | facts
    async with serving(names=names, base_url=given["base_url"], **settings, facts=SiteFacts(**given)) as served:
        answer = await served.client.http.post(RESOURCE, json=asked("tools/list"))
        assert answer.status_code == 404
        assert reason in answer.json()["error_description"]
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"):
            for at in ("", RESOURCE):
                assert (await served.client.http.get(path + at)).status_code == 404


@proves("oauth.401", "oauth.metadata")
async def test_the_open_endpoint_never_answers_401_and_the_root_documents_do_not_exist():
    async with serving() as served:
        await served.connect()
        for token in (None, "svc_live_" + "00" * 32, served.client.tokens["access_token"]):
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            for message in (asked("tools/list"), asked("tools/call", {"name": "oracle", "arguments": {}})):
                answer = await served.client.http.post("/api/mcp", json=message, headers=headers)
                assert answer.status_code == 200
                assert "www-authenticate" not in answer.headers
        for name in ("oauth-protected-resource", "oauth-authorization-server", "openid-configuration"):
            for path in (f"/.well-known/{name}", f"/.well-known/{name}/api/mcp"):
                assert (await served.client.http.get(path)).status_code == 404


async def test_below_a_path_the_documents_stand_where_the_standards_put_them():
    base = "https://data.example/below"
    async with serving(base_url=base) as served:
        refused = await served.client.http.post(RESOURCE, json=asked("tools/list"))
        at = f"https://data.example/.well-known/oauth-protected-resource/below{RESOURCE}"
        assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{at}"'
        resource = (await served.client.http.get(at)).json()
        assert resource["resource"] == resource["authorization_servers"][0] == base + RESOURCE
        server = (await served.client.http.get(f"/.well-known/oauth-authorization-server/below{RESOURCE}")).json()
        assert server["token_endpoint"] == f"{base}{RESOURCE}/token"


async def test_a_client_that_describes_itself_needs_no_registration():
    async with receiving() as host:
        document = host.url(path="/client.json")
        body = {"client_id": document, "client_name": "Own words", "redirect_uris": [BACK]}
        host.answer = status(200, body=json.dumps(body).encode())
        hooks = WebhookSettings(enabled=False, allow_loopback=True)
        async with serving(webhooks=hooks) as served:
            served.client.id = document
            page = await served.browser.visit(served.client.url())
            assert "Own words" in page.text
            assert document in page.text
            await served.client.exchange(answered(await served.browser.submit("allow", token=OWNER))["code"])
            assert (await served.client.call("oracle")).json()["result"]["isError"] is False
            assert (await served.client.refresh()).status_code == 200
    assert len(host.requests) == 1


async def test_grants_are_kept_where_the_ledger_is_kept(tmp_path):
    async with serving() as served, durable(tmp_path / "ledger.sqlite3") as file:
        service = served.service
        for where, store in ((file, SqlOAuthStore), (None, MemoryOAuthStore)):
            async with open_oauth(
                arrange_settings(), service.registry, service.pipeline, served.facts, where, service.visitors
            ) as oauth:
                assert isinstance(oauth.store, store)


async def test_what_has_ended_is_swept_when_the_service_opens(tmp_path):
    async with serving() as served, durable(tmp_path / "ledger.sqlite3") as file:
        service, store = served.service, SqlOAuthStore(file)
        await store.add_request(change(REQUEST, expires_at=0))
        async with open_oauth(
            arrange_settings(), service.registry, service.pipeline, served.facts, file, service.visitors
        ):
            with anyio.fail_after(5):
                while await store.find_request(REQUEST.id) is not None:
                    await anyio.lowlevel.checkpoint()
    assert SWEEP_S == 600


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8080", "http://localhost", "https://data.example"])
async def test_on_this_machine_and_over_https_there_is_oauth(base_url):
    async with serving(base_url=base_url) as served:
        assert find_reason_against(served.service.registry, served.facts, enabled=True) is None
        assert "switched off" in find_reason_against(served.service.registry, served.facts, enabled=False)
