"""An Idempotency-Key of somebody else opens nothing: keys are each token's own, whatever is known of another's call."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.live.buying import bought
from tests.live.killing import selling
from tests.live.processes import UNLIMITED, started

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
KEY, PATH, OTHER = "order-17", "/api/pro/macro", "/api/pro/sentiment"
QUOTE = {"amount_usd": 2}
PARAMS = {"name": "premium_macro", "arguments": {}, "_meta": {"idempotency_key": "at-once"}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The address of a service, and the tokens of two buyers."""
    folder = tmp_path_factory.mktemp("keys")
    with started("world", folder=folder) as world:
        settings = {**UNLIMITED, **selling(world.url), "TOOLSERVER_UPSTREAM__VIA": world.url}
        with started("serve", folder=folder, **settings) as service:
            yield service.url, bought(service, world.url), bought(service, world.url)


@pytest.fixture
def client(shop):
    with httpx.Client(base_url=shop[0], timeout=30, trust_env=False) as client:
        yield client


def of(token, key=KEY):
    return {"authorization": f"Bearer {token}", "idempotency-key": key}


def credits_of(client, token):
    return client.get("/api/payment/balance", headers={"authorization": f"Bearer {token}"}).json()["credits"]


def test_a_key_of_another_token_brings_an_answer_and_a_charge_of_ones_own(shop, client):
    _, hers, his = shop
    first = client.get(PATH, headers=of(hers))
    before = credits_of(client, his)
    stolen, again = client.get(PATH, headers=of(his)), client.get(PATH, headers=of(hers))
    receipts = [answer.headers["x-service-receipt-id"] for answer in (first, stolen, again)]
    assert receipts[0] == receipts[2] != receipts[1]
    assert credits_of(client, his) < before


def test_another_request_under_anothers_key_says_nothing_of_hers(shop, client):
    _, hers, his = shop
    client.get(PATH, headers=of(hers, "secret-1"))
    answer = client.get(OTHER, headers=of(his, "secret-1"))
    assert answer.status_code == 200, "a conflict would say that the key is in use"
    assert client.get(OTHER, headers=of(hers, "secret-1")).status_code in (409, 422)


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer svc_live_" + 64 * "0"}, {"authorization": "Basic x"}]
)
def test_without_a_token_that_pays_a_key_of_hers_opens_nothing(shop, client, headers):
    _, hers, _ = shop
    first = client.get(PATH, headers=of(hers, "order-18"))
    answer = client.get(PATH, headers=headers | {"idempotency-key": "order-18"})
    assert answer.status_code in (401, 402)
    assert first.headers["x-service-receipt-id"] not in answer.text + str(answer.headers)


def test_an_allowance_shares_no_key_with_the_token_that_pays_for_it(shop, client):
    _, hers, _ = shop
    made = client.post(
        "/api/payment/allowances", json={"name": "agent", "credits": 10}, headers={"authorization": f"Bearer {hers}"}
    )
    assert made.status_code == 201, made.text
    first = client.get(PATH, headers=of(hers, "order-19"))
    by_agent = client.get(PATH, headers=of(made.json()["token"], "order-19"))
    assert by_agent.status_code == 200, by_agent.text
    assert by_agent.headers["x-service-receipt-id"] != first.headers["x-service-receipt-id"]


def test_a_quote_under_a_key_is_shown_to_the_one_who_asked_with_his_token(shop, client):
    _, hers, his = shop
    path = "/api/payment/buy-credits"
    quotes = [client.post(path, json=QUOTE, headers=of(token, "quote-1")).json() for token in (hers, his, hers)]
    assert quotes[0]["memo"] == quotes[2]["memo"] != quotes[1]["memo"]
    guessed = client.post(path, json=QUOTE, headers={"idempotency-key": "quote-1"})
    assert guessed.status_code in (400, 422), "without a token a key has to be long: nothing else keeps the memo"


def test_two_tokens_at_the_same_moment_with_one_key_pay_once_each(shop, client):
    url, hers, his = shop
    before = [credits_of(client, token) for token in (hers, his)]

    def call(token):
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as own:
            answer = own.post("/api/mcp", json=CALL, headers={"authorization": f"Bearer {token}"})
            return answer.json()["result"]["_meta"]["receipt_id"]

    with ThreadPoolExecutor(12) as threads:
        receipts = dict(zip(range(12), threads.map(call, [hers, his] * 6), strict=True))
    mine, others = ({receipts[number] for number in range(at, 12, 2)} for at in (0, 1))
    assert len(mine) == len(others) == len(mine | others) - 1 == 1
    paid = [had - credits_of(client, token) for had, token in zip(before, (hers, his), strict=True)]
    assert paid[0] == paid[1] > 0
