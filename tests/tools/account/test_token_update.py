"""The limits of one's own token over REST and MCP: set, shown, enforced, taken away; never for an allowance."""

import asyncio

import pytest

from tests.calls.parts import RICH
from tests.requirements import proves
from tests.webhooks.served_hooks import hooked

PATH = "/api/payment/token"
PAID = "/api/pro/briefing"  # 1 credit


@pytest.fixture
async def made():
    async with hooked() as service:
        yield service


async def paid(made, token=RICH):
    return await made.client.get(PAID, headers={"authorization": f"Bearer {token}"})


async def limit(made, **given):
    answer = await made.call("PATCH", PATH, **given)
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "_meta"}


@proves("tokens.cap")
async def test_a_cap_is_set_shown_and_enforced_under_any_number_of_calls_at_once(made):
    unlimited = await limit(made)
    names = "credits_per_day spent_today frozen frozen_at alert_below alert_percent"
    assert unlimited == dict(zip(names.split(), (None, 0, False, None, None, None), strict=True))
    await limit(made, credits_per_day=3)
    answers = await asyncio.gather(*(paid(made) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [402] * 7
    (refused, *_) = [answer.json() for answer in answers if answer.status_code == 402]
    assert (refused["error"], refused["cap"]) == ("insufficient_credits", "credits_per_day")
    assert (await limit(made))["spent_today"] == 3
    assert (await limit(made, credits_per_day=0))["credits_per_day"] is None
    assert (await paid(made)).status_code == 200


@proves("tokens.freeze", "tokens.limits-children")
async def test_a_frozen_token_and_its_allowances_are_refused_in_words_that_thaw_it(made):
    child = (await made.call("POST", "/api/payment/allowances", name="robot", credits=3)).json()["token"]
    assert (await limit(made, frozen=True))["frozen"] is True
    for token in (RICH, child):
        refused = await paid(made, token)
        assert (refused.status_code, refused.json()["cap"]) == (402, "frozen")
        assert "PATCH /api/payment/token" in refused.json()["detail"]
    assert (await made.call("PATCH", PATH, token=child, frozen=False)).status_code == 409
    assert (await limit(made, frozen=False))["frozen_at"] is None
    assert (await paid(made, child)).status_code == 200


@pytest.mark.parametrize("wrong", [{"credits_per_day": -1}, {"alert_percent": 101}, {"frozen": "maybe"}, {"cap": 3}])
async def test_a_limit_that_is_none_is_refused(made, wrong):
    assert (await made.call("PATCH", PATH, **wrong)).status_code == 400


@proves("tokens.alerts")
async def test_paid_answers_say_which_thresholds_are_crossed(made):
    left = int((await paid(made)).headers["x-credits-remaining"])
    await limit(made, credits_per_day=4, alert_below=left - 1, alert_percent=75)
    answers = [await paid(made) for _ in range(2)]
    assert [answer.headers.get("x-credits-alert") for answer in answers] == [None, "balance, day"]
    assert len({answer.content for answer in answers}) == 1
    assert (await made.tool("premium_briefing"))["_meta"]["credits_alert"] == ["balance", "day"]
    await limit(made, credits_per_day=0, alert_below=0, alert_percent=0)
    assert "x-credits-alert" not in (await paid(made)).headers
    assert "credits_alert" not in (await made.tool("premium_briefing"))["_meta"]
