"""Allowances over REST and MCP: made, shown once, spent up to their caps, changed, revoked; nobody else's are seen."""

import asyncio
import re

import pytest

from tests.calls.parts import POOR, RICH
from tests.requirements import proves
from tests.webhooks.served_hooks import hooked

PATH = "/api/payment/allowances"
PAID = "/api/pro/briefing"  # 1 credit


@pytest.fixture
async def made():
    async with hooked() as service:
        yield service


async def create(made, token=RICH, **given):
    answer = await made.call("POST", PATH, token=token, **{"name": "robot", "credits": 3, **given})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def paid(made, token):
    return await made.client.get(PAID, headers={"authorization": f"Bearer {token}"})


async def left(made, token=RICH):
    """What a token can spend."""
    return (await made.call("GET", "/api/payment/statement", token=token)).json()["credits"]


@proves("allowance.child", "allowance.refusal", "allowance.list")
async def test_an_allowance_is_made_shown_once_and_spends_up_to_its_cap(made):
    body = await create(made)
    assert re.fullmatch("svc_live_[0-9a-f]{64}", body["token"])
    assert (body["credits"], body["spent"], body["state"], body["tools"]) == (3, 0, "active", None)

    answers = [await paid(made, body["token"]) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 402]
    assert [answer.headers["x-credits-remaining"] for answer in answers[:3]] == ["2", "1", "0"]
    refused = answers[3].json()
    assert (refused["error"], refused["cap"], refused["credits_remaining"]) == ("insufficient_credits", "credits", 0)

    listed = await made.call("GET", PATH)
    (record,) = listed.json()["allowances"]
    wanted = "id name credits spent spent_today credits_per_day expires_at tools state created_at last_used_at service"
    assert set(wanted.split()) == record.keys()
    assert (record["spent"], record["spent_today"], record["state"]) == (3, 3, "exhausted")
    assert body["token"] not in listed.text
    assert await left(made) == 97


@proves("allowance.caps")
async def test_a_hundred_calls_at_once_cross_no_cap(made):
    caps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    children = [(await create(made, credits=cap))["token"] for cap in caps]
    answers = await asyncio.gather(*(paid(made, child) for _ in range(10) for child in children))
    good = [answer for answer in answers if answer.status_code == 200]

    listed = (await made.call("GET", PATH)).json()["allowances"]
    assert sorted(record["spent"] for record in listed) == caps
    assert len(good) == sum(caps)
    assert await left(made) == 100 - sum(caps)


@proves("allowance.refusal", "allowance.change")
async def test_changes_hold_from_the_next_call_and_what_is_not_given_stays(made):
    body = await create(made, credits=1, credits_per_day=1, tools=["premium_macro"], expires_at="2027-02-01T00:00:00Z")
    assert (await paid(made, body["token"])).json()["cap"] == "tools"
    one = f"{PATH}/{body['id']}"
    changed = await made.call("PATCH", one, tools=["premium_briefing"], name="agent")
    assert (changed.status_code, changed.json()["tools"], changed.json()["name"]) == (
        200,
        ["premium_briefing"],
        "agent",
    )
    assert (changed.json()["credits_per_day"], changed.json()["expires_at"]) == (1, "2027-02-01T00:00:00Z")
    assert (await paid(made, body["token"])).status_code == 200
    await made.call("PATCH", one, credits=5)
    assert (await paid(made, body["token"])).json()["cap"] == "credits_per_day"
    freed = (await made.call("PATCH", one, credits_per_day=0, expires_at="never", tools=[])).json()
    assert (freed["credits_per_day"], freed["expires_at"], freed["tools"]) == (None, None, None)
    assert (await paid(made, body["token"])).status_code == 200
    same = (await made.call("PATCH", one)).json()
    caps = ("name", "credits", "credits_per_day", "expires_at", "tools", "state")
    assert [same[cap] for cap in caps] == [freed[cap] for cap in caps]


@proves("allowance.revoke")
async def test_a_revoked_one_is_refused_at_once(made):
    body = await create(made)
    for _ in range(2):
        answer = await made.call("DELETE", f"{PATH}/{body['id']}")
        assert (answer.status_code, answer.json()["state"]) == (200, "revoked")
    refused = await paid(made, body["token"])
    assert (refused.status_code, refused.json()["error"]) == (402, "expired")
    assert (await made.call("PATCH", f"{PATH}/{body['id']}", credits=9)).json()["error"] == "allowance_conflict"


@proves("allowance.no-children", "statement.allowances")
async def test_a_child_manages_nothing_and_sees_its_own_calls_only(made):
    body = await create(made)
    child, one = body["token"], f"{PATH}/{body['id']}"
    await paid(made, child)
    await paid(made, RICH)
    for method, path, given in (("GET", PATH, {}), ("POST", PATH, {"name": "x", "credits": 1}), ("DELETE", one, {})):
        answer = await made.call(method, path, token=child, **given)
        assert (answer.status_code, answer.json()["error"]) == (409, "allowance_conflict")
    own = (await made.call("GET", "/api/payment/statement", token=child)).json()
    assert [(e["kind"], e["allowance"]) for e in own["entries"]] == [("call", body["id"])]
    whole = (await made.call("GET", "/api/payment/statement")).json()
    assert [e["allowance"] for e in whole["entries"]] == [None, body["id"], None]
    assert own["credits"] == await left(made, child) == 2
    for method in ("PATCH", "DELETE"):
        answer = await made.call(method, one, token=POOR, **({"credits": 9} if method == "PATCH" else {}))
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@proves("allowance.subscriptions")
async def test_an_allowance_shares_the_five_subscriptions_of_its_owner(made):
    child = (await create(made, credits=50))["token"]
    asked = {"endpoint": "agent-context", "webhook_url": "https://1.1.1.1/hook"}
    answers = [
        await made.call("POST", "/api/pro/subscribe", token=token, **asked)
        for token in (RICH, child, RICH, child, child, RICH)
    ]
    assert [answer.status_code for answer in answers] == [201] * 5 + [409]
    assert (await made.call("GET", "/api/pro/subscriptions", token=child)).json()["count"] == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "x", "credits": 0},
        {"credits": 1},
        {"name": "x", "credits": 1, "credits_per_day": 0},
        {"name": "x", "credits": 1, "tools": ["premium_macroo"]},
        {"name": "x", "credits": 1, "tools": ["btc_price"]},
        {"name": "x", "credits": 1, "expires_at": "2026-01-01T00:00:00Z"},
        {"name": "x", "credits": 1, "expires_at": 17},
        {"name": "x", "credits": 1, "expires_at": "9999-12-31T23:59:59-23:59"},
        {"name": "x", "credits": 1, "expires_at": "0001-01-01T00:00:00+23:59"},
        {"name": "x", "credits": 1, "expires_at": "9999-12-31T23:59:59Z"},
        {"name": "x", "credits": 1, "expires_at": "2037-01-17T00:00:00Z"},
        {"name": "x", "credits": 1, "more": 1},
    ],
)
async def test_terms_that_mean_nothing_are_refused(made, wrong):
    answer = await made.call("POST", PATH, **wrong)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments")


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z"])
async def test_an_end_that_leaves_the_calendar_is_refused_and_the_list_stays_readable_on_every_face(made, end):
    one = f"{PATH}/{(await create(made))['id']}"
    for method, path, named in (("POST", PATH, {"name": "x", "credits": 1}), ("PATCH", one, {})):
        answer = await made.call(method, path, **named, expires_at=end)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments"), answer.text
        assert answer.json()["errors"][0]["loc"] == "expires_at"
    listed = await made.call("GET", PATH)
    assert (listed.status_code, [each["expires_at"] for each in listed.json()["allowances"]]) == (200, [None])
