"""POST /api/payment/visitor-token: a token, or the work that it takes, in members that a program can follow."""

import httpx
import pytest

from tests.arranged import client_of
from tests.calls.parts import engine
from tests.calls.toy import FIRST, REGISTRY
from tests.calls.visiting import solve
from tests.requirements import proves
from toolserver.registry.site_facts import VISITOR_TOKENS
from toolserver.settings import LimitSettings

EASY = {"visitor_work_bits": 2, "personal_per_minute": 1000}


async def post(client: httpx.AsyncClient, body: object = None) -> httpx.Response:
    return await client.post(VISITOR_TOKENS, json=body or {})


@proves("visitor.issue")
async def test_from_nothing_to_a_free_answer_of_ones_own():
    async with engine(REGISTRY, limits=LimitSettings(**EASY)) as e:
        e.internet.serves(FIRST, {"value": 3})
        async with client_of(e.service.web_app(), peer="192.0.2.1") as client:
            issued = [(await post(client)).json() for _ in range(3)]
            assert {each["expires_at"] for each in issued} == {"2027-02-14T08:00:00Z"}
            refused = await post(client)
            work = refused.json()["work"]
            solution = solve(work["challenge"], work["bits"])
            fourth = await post(client, {"challenge": work["challenge"], "solution": solution})
            tokens = [each["token"] for each in (*issued, fourth.json())]
            answers = [
                await client.get("/api/number", headers={"authorization": f"Bearer {token}"}) for token in tokens
            ]
            alone = [await client.get("/api/number") for _ in range(2)]

    assert refused.status_code == 429
    assert refused.json().items() >= {"error": "rate_limited", "limit": "visitor tokens"}.items()
    assert set(work) == {"algorithm", "challenge", "bits", "expires_at"}
    assert refused.headers["ratelimit-policy"] == '"visitor tokens";q=200;w=86400'
    assert (fourth.status_code, fourth.headers["cache-control"]) == (200, "no-store")
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.status_code for answer in alone] == [200, 429]


@pytest.mark.parametrize("body", [{"challenge": "a"}, {"solution": "1"}, {"challenge": "a", "solution": 1}, {"n": "1"}])
async def test_anything_but_a_challenge_with_its_solution_is_refused(body):
    async with engine(REGISTRY, limits=True) as e, client_of(e.service.web_app()) as client:
        answer = await post(client, body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments")


async def test_requests_count_by_the_address_that_a_trusted_proxy_names():
    async with engine(REGISTRY, limits=LimitSettings(trusted_proxies=["10.0.0.1"], personal_per_minute=2)) as e:
        async with client_of(e.service.web_app(), peer="10.0.0.1") as client:
            answers = [
                await client.post(VISITOR_TOKENS, headers={"x-forwarded-for": address})
                for address in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2")
            ]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200]
    assert answers[2].json()["limit"] == "personal"
