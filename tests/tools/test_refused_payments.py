"""Each way in which a token is refused, over REST and MCP, at every tool that needs one; and what needs none."""

import json

import pytest

from tests.requirements import proves
from tests.tools.premium.store import store
from toolserver.core.caller import token_hash
from toolserver.settings import LimitSettings

BROKE, REVOKED, UNKNOWN = (f"svc_live_{letter * 64}" for letter in "bcd")
BODY = {"error", "signup", "pricing", "detail", "request_id"}


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path, limits=LimitSettings(enabled=False)) as s:
        ledger = s.service.money.ledger
        await ledger.mint(BROKE, 1, cause="one")
        await ledger.reserve("call_of_another", BROKE, 1, endpoint="/x", ttl_s=3600)
        await ledger.mint(REVOKED, 100, cause="hundred")
        await ledger.revoke(token_hash(REVOKED).hex()[:16], "leaked")
        yield s


async def over_mcp(shop, tool, arguments, token):
    params = {"name": tool.name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"authorization": f"Bearer {token}"} if token else {}
    answer = await shop.client.post("/api/mcp?toolset=all", json=message, headers=headers)
    return answer.status_code, answer.json()["result"]


@proves(
    "payment-error.missing_token", "payment-error.invalid_token", "payment-error.expired", "payment-error.body",
    "payment-error.pricing-header", "webhook.bearer", "errors.mcp",
)  # fmt: skip
@pytest.mark.parametrize(("token", "code"), [(None, "missing_token"), (UNKNOWN, "invalid_token"), (REVOKED, "expired")])
async def test_every_tool_that_needs_a_token_refuses_a_bad_one_alike_over_rest_and_mcp(shop, token, code):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    tools = [tool for tool in shop.tools if tool.needs_token or tool.credits]
    for tool in tools:
        arguments = await shop.example(tool.name)
        refused = await shop.send(tool, arguments, **headers)
        body = refused.json()
        assert (refused.status_code, body["error"]) == (402, code), tool.name
        assert body.keys() >= BODY, tool.name
        assert body["pricing"] == {"1 USD": "50 credits"}
        assert body["signup"] == refused.headers["x-service-pricing"] == "https://data.example/docs/payments"
        status, result = await over_mcp(shop, tool, arguments, token)
        assert (status, result["isError"], "structuredContent" in result) == (200, True, False), tool.name
        said = json.loads(result["content"][0]["text"])
        assert (said["error"], said["signup"]) == (code, body["signup"]), tool.name
    assert {tool.path for tool in tools} >= {"/api/payment/balance", "/api/pro/subscribe/{id}/rotate-secret"}
    assert len(tools) >= 23
    assert shop.upstreams.bodies == []


@proves("payment-error.insufficient_credits", "payment-error.pricing-header")
async def test_every_priced_tool_refuses_a_token_with_too_little_before_anything_is_asked(shop):
    priced = [tool for tool in shop.tools if tool.credits]
    for tool in priced:
        arguments = await shop.example(tool.name)
        refused = await shop.send(tool, arguments, authorization=f"Bearer {BROKE}")
        assert (refused.status_code, refused.json()["error"]) == (402, "insufficient_credits"), tool.name
        assert (refused.json()["required"], refused.json()["credits_remaining"]) == (tool.credits, 0)
        assert "x-service-pricing" in refused.headers
        _, result = await over_mcp(shop, tool, arguments, BROKE)
        assert json.loads(result["content"][0]["text"])["error"] == "insufficient_credits", tool.name
    assert len(priced) == 10
    assert shop.upstreams.bodies == []


@proves("auth.none", "payment.open", "free.open")
@pytest.mark.parametrize("token", [None, UNKNOWN, REVOKED])
async def test_what_needs_no_token_asks_for_none_and_ignores_a_bad_one(shop, token):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    tools = [tool for tool in shop.tools if not tool.needs_token and not tool.credits]
    for tool in tools:
        answer = await shop.send(tool, await shop.example(tool.name), **headers)
        assert answer.status_code != 402, (tool.name, answer.text)
    assert {"payment_buy_credits", "payment_confirm", "health", "receipt_verify"} <= {tool.name for tool in tools}
    assert (await shop.client.get("/api/llm-tools", headers=headers)).status_code == 200
