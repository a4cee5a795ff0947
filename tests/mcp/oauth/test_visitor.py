"""Continuing free: consent without credits ends in a visitor token, one for each person and none that can pay."""

import json
import re

from tests.calls.visiting import solve
from tests.mcp.oauth.served import answered, serving
from tests.mcp.service import asked
from tests.requirements import proves
from toolserver.calls.visitor_tokens import LIFE, VisitorTokens
from toolserver.mcp.oauth.metadata import RESOURCE
from toolserver.settings import LimitSettings

EASY = LimitSettings(visitor_work_bits=2)


async def go_free(served, browser, **fields):
    """Let a person at a browser continue free; what the client gets."""
    if not served.client.id:
        await served.client.register()
    await browser.visit(served.client.url())
    return await browser.submit("free", **fields)


async def connect_free(served, browser):
    """The whole dance; the access token."""
    tokens = await served.client.exchange(answered(await go_free(served, browser))["code"])
    assert tokens.status_code == 200, tokens.text
    return tokens.json()["access_token"]


def read_call(answer):
    """Whether a call failed, and the JSON that it answered."""
    result = answer.json()["result"]
    return result["isError"], json.loads(result["content"][0]["text"])


@proves("visitor.consent")
async def test_a_person_without_credits_connects_and_the_client_gets_a_visitor_token_and_no_allowance():
    async with serving(limited=True) as served:
        token = await connect_free(served, served.browser)

        assert served.client.tokens == {"access_token": token, "token_type": "Bearer", "expires_in": 30 * 86_400}
        assert served.service.visitors.tokens.find_client(token)
        assert read_call(await served.client.call("word"))[0] is False
        failed, problem = read_call(await served.client.call("oracle"))
        assert (failed, problem["error"]) == (True, "payment_required")
        assert not await served.allowances()


@proves("visitor.consent")
async def test_nothing_stays_stored_of_a_visitor_and_a_code_is_used_once():
    async with serving() as served:
        code = answered(await go_free(served, served.browser))["code"]
        first = await served.client.exchange(code)
        again = await served.client.exchange(code)
        assert (first.status_code, again.status_code) == (200, 400)
        assert again.json()["error"] == "invalid_grant"
        token = first.json()["access_token"]
        revoked = await served.client.revoke(token)
        assert revoked.status_code == 200
        assert read_call(await served.client.call("word", token=token))[0] is False, "there is nothing to revoke"
        served.clock.advance(3 * 3600)
        await served.service.oauth.store.sweep(int(served.clock.time() * 1000))
        assert await served.service.oauth.store.sweep(int(served.clock.time() * 1000)) == 0


async def test_a_token_that_has_ended_or_is_forged_is_401_so_that_the_host_signs_in_again():
    async with serving() as served:
        token = await connect_free(served, served.browser)
        forged = VisitorTokens(b"o" * 32, served.clock).make().token
        served.clock.advance(LIFE.total_seconds())
        for bad in (token, forged, "svc_free_"):
            answer = await served.client.call("word", token=bad)
            assert answer.status_code == 401
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@proves("visitor.consent")
async def test_the_fourth_of_a_network_works_in_the_browser_and_a_neighbour_does_not():
    async with serving(limits=EASY) as served:
        for _ in range(3):
            await connect_free(served, served.new_browser("192.0.2.1"))
        browser = served.new_browser("192.0.2.1")
        page = await go_free(served, browser)
        assert page.status_code == 200
        challenge, bits = re.search(r'id="work" data-challenge="([^"]+)" data-bits="(\d+)"', page.text).groups()
        assert "consent_work" in page.text
        wrong = await browser.submit("free", challenge=challenge.replace("-2-", "-0-"), solution="1")
        assert wrong.status_code == 422
        assert "not a challenge" in wrong.text
        solved = await browser.submit("free", challenge=challenge, solution=solve(challenge, int(bits)))
        assert (await served.client.exchange(answered(solved)["code"])).status_code == 200
        assert await connect_free(served, served.new_browser("192.0.2.2"))


async def test_an_address_that_gets_no_more_is_shown_why():
    async with serving(limits=LimitSettings(visitor_per_day=1)) as served:
        await connect_free(served, served.browser)
        page = await go_free(served, served.new_browser())
        assert page.status_code == 422
        assert "this address gets no more" in page.text


@proves("visitor.egress")
async def test_a_hundred_people_of_a_hosted_client_behind_one_address_are_all_answered():
    async with serving(limited=True) as served:
        await served.client.register()
        tokens = [await connect_free(served, served.new_browser(f"198.51.100.{user}")) for user in range(100)]
        program = served.client.http  # one address for all of them
        answers = []
        for token in tokens:
            bearer = {"authorization": f"Bearer {token}"}
            listing, call = asked("tools/list", {}), asked("tools/call", {"name": "word", "arguments": {}})
            answers += [await program.post(RESOURCE, json=message, headers=bearer) for message in (listing, call)]

        assert len(set(tokens)) == 100
        assert [answer.status_code for answer in answers] == [200] * 200
        assert not any(answer.json()["result"].get("isError") for answer in answers)


async def test_with_a_visitor_connection_a_bought_token_can_be_spent_as_an_argument():
    async with serving(limited=True) as served:
        token = await connect_free(served, served.browser)
        call = asked("tools/call", {"name": "oracle", "arguments": {"token": "svc_live_" + "ab" * 32}})
        answer = await served.client.http.post(RESOURCE, json=call, headers={"authorization": f"Bearer {token}"})
        failed, payload = read_call(answer)
        assert failed is False
        assert payload["_meta"]["credits_remaining"] < 1000
