"""POST /t/try: a page tries a free tool, within small limits of its own that no program's calls count in."""

import httpx
import pytest

from tests.arranged import client_of
from tests.calls.parts import engine
from tests.calls.toy import FIRST, REGISTRY
from tests.requirements import proves
from toolserver.core.waiting_room import waiting_client
from toolserver.registry.site_facts import TRY
from toolserver.settings import LimitSettings


def body(tool="number", **arguments):
    return {"tool": tool, "arguments": arguments}


@proves("pages.try")
async def test_a_try_is_the_answer_of_the_tool_and_uses_up_nothing_of_the_address():
    async with engine(REGISTRY, limits=True) as e, client_of(e.service.web_app()) as client:
        e.internet.serves(FIRST, {"value": 3})
        tries = [await client.post(TRY, json=body(add=add)) for add in (1, 1, 2)]
        answer = await client.get("/api/number?add=1")
    assert [each.status_code for each in tries] == [200] * 3
    assert [each.json()["data"]["value"] for each in tries] == [4, 4, 5]
    assert tries[0].json() == answer.json()
    assert (answer.status_code, tries[0].headers["cache-control"]) == (200, "no-store")
    assert "set-cookie" not in tries[0].headers
    assert "svc_" not in tries[0].text


@proves("pages.try")
async def test_the_limits_of_tries_are_their_own_for_a_minute_a_day_and_a_whole_48():
    chosen = LimitSettings(page_tries_per_minute=2, page_tries_per_day=3)
    async with engine(REGISTRY, limits=chosen) as e:
        e.internet.serves(FIRST, {"value": 3})
        app, statuses, limits = e.service.web_app(), [], []
        for peer in ("2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1", "2001:db8:1:1::1"):
            async with client_of(app, peer=peer) as client:
                answer = await client.post(TRY, json=body())
                statuses.append(answer.status_code)
                limits.append(answer.json().get("limit"))
        e.clock.advance(60)
        async with client_of(app, peer="2001:db8:0:4::1") as client:
            limits += [(await client.post(TRY, json=body())).json().get("limit") for _ in range(2)]
    assert statuses == [200, 200, 429, 200]
    assert limits == [None, None, "page tries", None, None, "page tries a day"]


async def test_a_try_waits_as_the_stranger_that_it_is_for():
    async with engine(REGISTRY, limits=True) as e:
        waited_as = []

        async def answer(request):
            waited_as.append(waiting_client.get())
            return httpx.Response(200, json={"value": 3})

        e.internet.serves(FIRST, answer)
        async with client_of(e.service.web_app(), peer="2001:db8:0:1::1") as client:
            answered = await client.post(TRY, json=body())
    assert answered.status_code == 200
    assert waited_as == ["2001:db8::/48"], "and not as work of our own, which never makes room"


@pytest.mark.parametrize("name", ["premium_report", "nothing", "payment_buy_credits"])
async def test_what_costs_or_is_not_there_is_not_tried(name):
    async with engine(REGISTRY, limits=True) as e, client_of(e.service.web_app()) as client:
        answer = await client.post(TRY, json=body(name), headers={"authorization": "Bearer svc_live_" + "a" * 64})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize("sent", [{}, {"tool": 1}, {"tool": "number", "arguments": []}, body(add="x"), body(nothing=1)])
async def test_wrong_arguments_are_refused_as_by_the_tool(sent):
    async with engine(REGISTRY, limits=True) as e, client_of(e.service.web_app()) as client:
        answer = await client.post(TRY, json=sent)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments")
