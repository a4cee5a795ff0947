"""A refusal of a free call is true: which rule it is, whether waiting brings other data, and what helps this caller."""

import re
from contextlib import asynccontextmanager

import pytest

from tests.arranged import client_of
from tests.calls.parts import RICH, engine
from tests.calls.toy import FIRST, REGISTRY
from tests.requirements import proves
from toolserver.calls.rate_limit import Quota
from toolserver.errors import RateLimited
from toolserver.settings import LimitSettings

LIMITED = {"limited": True}
POLICY = re.compile(r'"[a-z0-9 /_]+";q=\d+;w=\d+(\.\d{1,3})?')
STATE = re.compile(r'"([a-z0-9 /_]+)";r=\d+;t=\d+')


@asynccontextmanager
async def limited_engine(**limits):
    async with engine(REGISTRY, limits=LimitSettings(**limits)) as e:
        e.internet.serves(FIRST, {"value": 3})
        yield e


async def refuse(e, arguments=None, **caller):
    with pytest.raises(RateLimited) as refused:
        await e.call("number", arguments, **(LIMITED | caller))
    return refused.value


@proves("limits.truth")
async def test_while_the_answer_stays_the_same_waiting_is_said_to_bring_nothing_new():
    async with limited_engine(spacing_s=10) as e:
        await e.call("number", **LIMITED)
        e.clock.advance(4)
        refused = await refuse(e)
        assert refused.extra["same_data_until"] == "2027-01-15T08:00:30Z"
        assert "Try again in 6 s. Waiting brings the same data until 08:00:30 UTC, in 26 s." in refused.detail
        e.clock.advance(17)
        await e.call("number", **LIMITED)
        refused = await refuse(e)
        assert "same_data_until" not in refused.extra
        assert "By then there may be newer data." in refused.detail


@proves("limits.truth")
async def test_of_a_question_that_nobody_asked_nothing_is_said_about_its_data():
    async with limited_engine() as e:
        await e.call("number", **LIMITED)
        refused = await refuse(e, {"add": 1})
        assert "data" not in refused.detail
        assert "same_data_until" not in refused.extra


@proves("limits.truth")
async def test_a_visitor_token_is_offered_to_those_it_helps_and_only_to_them():
    async with limited_engine() as e:
        visitor = e.service.visitors.tokens.make().token
        for token, helps in ((None, True), (visitor, False), (RICH, False)):
            await e.call("number", token=token, **LIMITED)
            refused = await refuse(e, token=token)
            assert ("visitor_token" in refused.extra, "A visitor token" in refused.detail) == (helps, helps)


@proves("headers.declared")
@pytest.mark.parametrize("path", ["/api/number", "/api/number?add=1"])
async def test_ratelimit_names_only_policies_of_the_same_response(path):
    async with limited_engine(daily=3, spacing_s=1) as e, client_of(e.service.web_app(), peer="2001:db8::1") as client:
        answers = []
        for _ in range(4):
            answers += [await client.get(path), await client.get(path)]
            e.clock.advance(1)
    limits = {answer.json().get("limit") for answer in answers}
    assert limits == {None, "spacing", "daily"}
    for answer in answers:
        policies = answer.headers["ratelimit-policy"].split(", ")
        assert all(POLICY.fullmatch(policy) for policy in policies)
        names = [STATE.fullmatch(state)[1] for state in answer.headers["ratelimit"].split(", ")]
        assert {f'"{name}"' for name in names} <= {policy.partition(";")[0] for policy in policies}
    body = answers[1].json()
    assert body["visitor_token"] == "POST https://data.example/api/payment/visitor-token"


@proves("headers.declared")
async def test_the_refusal_of_a_48_declares_the_policy_that_it_names():
    async with limited_engine(spacing_s=1000) as e:
        app, answers = e.service.web_app(), []
        for number in range(17):
            async with client_of(app, peer=f"2001:db8:0:{number:x}::1") as client:
                answers.append(await client.get("/api/number"))
    assert [answer.status_code for answer in answers] == [200] * 16 + [429]
    assert answers[-1].headers["ratelimit-policy"] == '"spacing of a /48";q=16;w=1000'
    assert answers[-1].headers["ratelimit"].startswith('"spacing of a /48";r=0;')
    assert "All addresses of an IPv6 /48 together get 16 calls of one free endpoint" in answers[-1].json()["detail"]


def test_a_window_is_written_as_a_number_of_the_header_syntax():
    windows = [Quota("x", 1, window).policy.partition("w=")[2] for window in (30, 0.25, 86_400, 2_000_000, 1 / 3)]
    assert windows == ["30", "0.25", "86400", "2000000", "0.333"]


@proves("limits.no-spacing")
async def test_without_spacing_only_the_day_counts():
    async with limited_engine(spacing_s=0, daily=20) as e, client_of(e.service.web_app()) as client:
        answers = [await client.get(f"/api/number?add={number}") for number in range(21)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert answers[0].headers["ratelimit-policy"] == '"daily";q=20;w=86400'
    assert answers[0].headers["ratelimit"].startswith('"daily";r=19;')
    assert answers[-1].json()["limit"] == "daily"
