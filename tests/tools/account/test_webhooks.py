import asyncio
import json
import re

import pytest

from tests.calls.parts import POOR, RICH
from tests.requirements import proves
from tests.webhooks.receivers import receiving, status
from tests.webhooks.served_hooks import hooked

PUBLIC = "https://1.1.1.1/hook"


@pytest.fixture
async def made():
    async with hooked() as service:
        yield service


@proves("webhook.subscribe", "webhook.created")
async def test_subscribing_answers_201_with_the_secret_and_everything_that_is_promised(made):
    body = await made.subscribe(PUBLIC)
    assert re.fullmatch("wh_[0-9a-f]{16}", body["id"])
    assert re.fullmatch("whsec_[0-9a-f]{32}", body["secret"])
    assert (body["hmac_algorithm"], body["fire_cost_credits"]) == ("sha256", 1)
    assert body["fire_interval"] == "About every 5 minutes"
    assert (body["webhook_url"], body["endpoint"], body["state"]) == (PUBLIC, "agent-context", "active")
    assert (body["signature_header"], body["timestamp_header"]) == ("X-Service-Signature", "X-Service-Timestamp")
    assert body["created_at"] == "2027-01-15T08:00:00Z"
    assert body["next_fire_at"] == "2027-01-15T08:05:00Z"


@proves("webhook.list")
async def test_the_list_has_the_record_of_the_contract_and_no_secret(made):
    body = await made.subscribe(PUBLIC, description="mine", headers={"X-Key": "hidden-value"})
    answer = await made.call("GET", "/api/pro/subscriptions")
    (record,) = answer.json()["subscriptions"]
    wanted = (
        "id endpoint webhook_url state pause_reason created_at next_fire_at last_delivered_at last_status last_error "
        "consecutive_failures delivered_count failed_count"
    )
    assert set(wanted.split()) <= record.keys()
    assert (record["id"], record["description"], answer.json()["count"]) == (body["id"], "mine", 1)
    assert "whsec_" not in answer.text
    assert "hidden-value" not in answer.text


@proves("webhook.cap", "webhook.sixth")
async def test_the_sixth_is_refused_even_when_fifty_come_at_once(made):
    asked = [made.call("POST", "/api/pro/subscribe", endpoint="agent-context", webhook_url=PUBLIC) for _ in range(50)]
    answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [409] * 45
    refused = next(answer.json() for answer in answers if answer.status_code == 409)
    assert refused["error"] == "subscription_conflict"
    listed = (await made.call("GET", "/api/pro/subscriptions")).json()
    assert listed["count"] == 5


@proves("webhook.cancel")
async def test_a_cancelled_one_is_gone_and_makes_room(made):
    ids = [(await made.subscribe(PUBLIC))["id"] for _ in range(5)]
    for _ in range(2):
        answer = await made.call("DELETE", f"/api/pro/subscribe/{ids[0]}")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    await made.subscribe(PUBLIC)
    listed = (await made.call("GET", "/api/pro/subscriptions")).json()["subscriptions"]
    assert ids[0] not in {record["id"] for record in listed}


@proves("webhook.owner")
@pytest.mark.parametrize(
    ("method", "tail"),
    [("DELETE", ""), ("POST", "/resume"), ("GET", "/deliveries"), ("POST", "/test"), ("POST", "/rotate-secret")],
)
async def test_another_owners_subscription_is_not_found(made, method, tail):
    body = await made.subscribe(PUBLIC)
    other = await made.call(method, f"/api/pro/subscribe/{body['id']}{tail}", token=POOR)
    unknown = await made.call(method, f"/api/pro/subscribe/wh_{'0' * 16}{tail}")
    assert (other.status_code, unknown.status_code) == (404, 404)
    assert other.json()["detail"] == unknown.json()["detail"]
    assert (await made.call("GET", "/api/pro/subscriptions", token=POOR)).json()["count"] == 0


@proves("webhook.bearer")
async def test_every_route_needs_a_token(made):
    routes = [
        ("POST", "/api/pro/subscribe", {"endpoint": "agent-context", "webhook_url": PUBLIC}),
        ("GET", "/api/pro/subscriptions", {}),
        ("DELETE", f"/api/pro/subscribe/wh_{'0' * 16}", {}),
    ]
    for method, path, body in routes:
        answer = await made.call(method, path, token=None, **body)
        assert (answer.status_code, answer.json()["error"]) == (402, "missing_token")
        answer = await made.call(method, path, token="svc_live_" + "9" * 64, **body)
        assert (answer.status_code, answer.json()["error"]) == (402, "invalid_token")


@proves("webhook.target")
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.com/", "https_required"),
        ("https://127.0.0.1/", "private_address"),
        ("https://2130706433/", "invalid_url"),
        ("https://[::ffff:127.0.0.1]/", "private_address"),
        ("https://localhost/", "private_or_local_hostname"),
        ("https://1.1.1.1:22/", "port_not_allowed"),
        ("https://me:secret@1.1.1.1/", "invalid_url"),
        ("https://1.1.1.1/" + "a" * 2000, "url_too_long"),
        ("nonsense", "invalid_url"),
    ],
)
async def test_a_target_that_is_not_allowed_is_400_with_the_reason(url, reason):
    async with hooked(allow_loopback=False) as service:
        answer = await service.call("POST", "/api/pro/subscribe", endpoint="agent-context", webhook_url=url)
    body = answer.json()
    assert (answer.status_code, body["error"], body["errors"][0]["type"]) == (400, "invalid_arguments", reason)
    assert body["errors"][0]["loc"] == "webhook_url"


@pytest.mark.parametrize(
    ("changed", "loc"),
    [
        ({"endpoint": "btc-price"}, "endpoint"),
        ({"params": {"nothing": 1}}, "params.nothing"),
        ({"headers": {"Host": "a"}}, "headers"),
        ({"headers": {"X-Service-Signature": "a"}}, "headers"),
        ({"headers": {"webhook-id": "a"}}, "headers"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "headers"),
        ({"headers": {"X A": "a"}}, "headers"),
        ({"when": {"path": "a"}}, "when"),
        ({"when": {"path": "context.markets.bitcoin", "above": 1}}, "when.path"),
        ({"when": {"path": "a", "above": 1, "over": 2}}, "when.over"),
    ],
)
async def test_what_cannot_be_taken_is_400_and_says_where(made, changed, loc):
    asked = {"endpoint": "agent-context", "webhook_url": PUBLIC} | changed
    answer = await made.call("POST", "/api/pro/subscribe", **asked)
    assert (answer.status_code, answer.json()["errors"][0]["loc"]) == (400, loc)
    assert (await made.call("GET", "/api/pro/subscriptions")).json()["count"] == 0


@proves("webhook.log")
async def test_a_delivery_is_in_the_log_with_its_cost_and_pages_lead_on(made):
    async with receiving() as receiver:
        body = await made.subscribe(receiver.url(), headers={"X-Key": "mine"})
        for _ in range(3):
            assert (await made.call("POST", f"/api/pro/subscribe/{body['id']}/test")).json()["delivered"] is True
    path = f"/api/pro/subscribe/{body['id']}/deliveries"
    first = (await made.call("GET", f"{path}?limit=2")).json()
    assert [d["kind"] for d in first["deliveries"]] == ["test", "test"]
    assert first["deliveries"][0] | {"id": "", "duration_ms": 1} == {
        "id": "",
        "kind": "test",
        "state": "free",
        "reason": None,
        "created_at": "2027-01-15T08:00:00Z",
        "finished_at": "2027-01-15T08:00:00Z",
        "attempts": 1,
        "status": 204,
        "error": None,
        "duration_ms": 1,
        "credits": 0,
        "receipt_id": None,
    }
    rest = (await made.call("GET", f"{path}?limit=2&cursor={first['next_cursor']}")).json()
    assert (len(rest["deliveries"]), rest["next_cursor"]) == (1, None)
    assert receiver.requests[0].headers["x-key"] == "mine"
    assert json.loads(receiver.requests[0].body)["test"] is True


@proves("webhook.rotate")
async def test_a_rotated_secret_is_new_and_both_sign_for_a_day(made):
    async with receiving() as receiver:
        body = await made.subscribe(receiver.url())
        rotated = (await made.call("POST", f"/api/pro/subscribe/{body['id']}/rotate-secret")).json()
        assert rotated["secret"] != body["secret"]
        await made.call("POST", f"/api/pro/subscribe/{body['id']}/test")
        made.clock.advance(86_401)
        await made.call("POST", f"/api/pro/subscribe/{body['id']}/test")
    during, after = (request.headers for request in receiver.requests)
    assert len(during["webhook-signature"].split()) == 2
    assert "x-service-signature-previous" in during
    assert len(after["webhook-signature"].split()) == 1
    assert "x-service-signature-previous" not in after


@proves("webhook.needs-credit")
async def test_without_a_credit_nothing_is_subscribed_to_tested_or_resumed(made):
    given = {"endpoint": "macro", "webhook_url": PUBLIC}
    refused = [await made.call("POST", "/api/pro/subscribe", token=POOR, **given)]
    made.service.money.ledger.fund(POOR, 1)
    path = f"/api/pro/subscribe/{(await made.call('POST', '/api/pro/subscribe', token=POOR, **given)).json()['id']}"
    await made.service.money.ledger.reserve("call_of_another", POOR, 1, endpoint="/api/pro/macro", ttl_s=60)
    refused += [await made.call("POST", f"{path}/{what}", token=POOR) for what in ("test", "resume")]
    for answer in refused:
        body = answer.json()
        assert (answer.status_code, body["error"]) == (402, "insufficient_credits")
        assert (body["required"], body["credits_remaining"]) == (1, 0)


@proves("webhook.target-first")
async def test_a_target_that_is_refused_is_so_before_the_balance(made):
    given = {"endpoint": "macro", "webhook_url": "https://10.0.0.1/"}
    assert (await made.call("POST", "/api/pro/subscribe", token=POOR, **given)).status_code == 400


async def test_the_same_can_be_done_over_mcp(made):
    async with receiving(status(500)) as receiver:
        when = {"path": "context.markets.btc.price_usd", "above": 100000, "clear_below": 99000, "for_s": 300}
        result = await made.tool("webhook_subscribe", endpoint="agent-context", webhook_url=receiver.url(), when=when)
        subscription = result["structuredContent"]
        assert subscription["when"] == when
        tested = await made.tool("webhook_test", id=subscription["id"], state="fired")
        assert (tested["structuredContent"]["delivered"], tested["structuredContent"]["status"]) == (False, 500)
        assert json.loads(receiver.requests[0].body)["condition"]["state"] == "fired"
        listed = await made.tool("webhook_list")
        assert listed["structuredContent"]["count"] == 1
        assert (await made.tool("webhook_unsubscribe", id=subscription["id"]))["structuredContent"][
            "state"
        ] == "cancelled"
    refused = await made.tool("webhook_subscribe", endpoint="agent-context", webhook_url="http://10.0.0.1/")
    assert refused["isError"] is True


async def test_the_id_stands_in_the_path_only(made):
    body = await made.subscribe(PUBLIC)
    answer = await made.call("POST", f"/api/pro/subscribe/{body['id']}/resume", id=body["id"])
    assert answer.status_code == 400
    wrong = await made.call("GET", f"/api/pro/subscribe/{body['id']}")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "DELETE, OPTIONS")


@proves("webhook.secrets")
async def test_no_token_is_stored_and_secrets_only_encrypted(made):
    body = await made.subscribe(PUBLIC, headers={"X-Key": "hidden-value"})
    store = made.service.info.webhooks._store
    (kept,) = await store.all(10)
    written = repr(kept)
    assert RICH not in written
    assert body["secret"] not in written
    assert "hidden-value" not in written
