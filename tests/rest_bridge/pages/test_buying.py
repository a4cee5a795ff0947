"""What the page /buy asks: a wallet of the demo only where the chain is simulated, payments where they can be seen."""

import json
from dataclasses import replace

import pytest

from rest_bridge.pages.buy import demo_wallet, mount_buying, payment_watch
from tests.catalog.tiny import FACTS
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses
from toolserver.errors import ChainUnavailable, RateLimited
from toolserver.registry.site_facts import DEMO_PAY, WATCH, PurchaseTerms, Sales

SIMULATED = replace(FACTS, sales=Sales(demo_wallet=True))
PAYMENT = {"to": "0x1", "amount_usd": 2.5}


async def paid(to, amount):
    return f"0x{to}{amount}"


def limits(most=60):
    return PersonalLimits(per_minute=most, monotonic=ManualClock(0).monotonic)


def mounted(facts, world=None):
    return mount_buying(facts, None, world, limits(), Addresses([]))


async def asked(body, method="POST", pay=paid):
    return await sent(demo_wallet(pay, SIMULATED), body, method)


async def sent(app, body, method="POST", *, client=("192.0.2.1", 1), forwarded=None):
    said = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message):
        said.append(message)

    headers = [(b"x-forwarded-for", forwarded)] if forwarded else []
    scope = {"method": method, "path": DEMO_PAY, "query_string": b"", "headers": headers, "client": client}
    await app(scope, receive, send)
    return said[0]["status"], json.loads(said[1]["body"]), dict(said[0]["headers"])


@pytest.mark.parametrize(
    ("sales", "world"), [(None, "http://w"), (Sales(), "http://w"), (Sales(demo_wallet=True), None)]
)
def test_it_is_nowhere_else(sales, world):
    assert DEMO_PAY not in mounted(replace(FACTS, sales=sales), world)


def test_it_stands_at_its_path():
    assert DEMO_PAY in mounted(SIMULATED, "http://w")


async def test_a_payment_is_made_and_its_hash_told():
    assert (await asked(PAYMENT))[:2] == (200, {"tx_hash": "0x0x12.5"})


@pytest.mark.parametrize(
    "body", [{}, {"to": 1, "amount_usd": 2}, {"to": "0x1", "amount_usd": True}, PAYMENT | {"to": 5}]
)
async def test_what_is_no_payment_is_refused(body):
    status, problem, _ = await asked(body)
    assert (status, problem["error"]) == (400, "invalid_arguments")


async def test_other_methods_are_refused():
    status, _, headers = await asked({}, method="GET")
    assert (status, headers[b"allow"]) == (405, b"POST")


async def test_a_world_that_is_away_is_told_with_the_time_to_wait():
    async def away(to, amount):
        raise ChainUnavailable("away", headers={"Retry-After": "3"})

    status, problem, headers = await asked(PAYMENT, pay=away)
    assert (status, problem["error"], headers[b"retry-after"]) == (503, "chain_unavailable", b"3")


class Desk:
    """Saw the payment of one purchase."""

    async def find_payment(self, memo):
        if memo == "broken":
            raise RuntimeError("a secret detail")
        return "0xab" if memo == "paid" else None


def watch(most=60):
    return payment_watch(Desk(), FACTS, limits(most), Addresses([]))


@pytest.mark.parametrize(("memo", "tx_hash"), [("paid", "0xab"), ("unpaid", None)])
async def test_whether_a_payment_has_come_is_told_to_who_has_the_memo(memo, tx_hash):
    assert (await sent(watch(), {"nonce": memo}))[:2] == (200, {"tx_hash": tx_hash})


async def test_a_question_without_a_memo_is_refused_and_questions_are_counted():
    assert (await sent(watch(), {}))[0] == 400
    counted = watch(most=2)
    assert [(await sent(counted, {"nonce": "unpaid"}))[0] for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize(
    ("sales", "seen"),
    [
        (Sales(), True),
        (Sales(transfer=False, x402_most_usd=5), False),
        (Sales(terms=None), False),
        (Sales(terms=PurchaseTerms(shared_wallet=True)), False),
        (None, False),
    ],
    ids=["own", "x402 alone", "sister", "shared wallet", "nothing sold"],
)
def test_payments_are_looked_for_only_where_an_address_belongs_to_one_purchase(sales, seen):
    assert (WATCH in mounted(replace(FACTS, sales=sales))) is seen


async def test_a_whole_number_of_dollars_is_an_amount_and_words_are_not():
    assert (await asked(PAYMENT | {"amount_usd": 3}))[1] == {"tx_hash": "0x0x13"}
    assert (await asked(PAYMENT | {"amount_usd": "3"}))[0] == 400


@pytest.mark.parametrize("memo", [None, 5, ["paid"]])
async def test_a_memo_is_a_text(memo):
    status, problem, _ = await sent(watch(), {"nonce": memo})
    assert (status, problem["error"]) == (400, "invalid_arguments")


async def test_questions_count_for_the_client_that_a_trusted_proxy_names_and_with_payment_tools():
    counted = limits(most=1)
    app = payment_watch(Desk(), FACTS, counted, Addresses(["192.0.2.1/32"]))
    statuses = [(await sent(app, {"nonce": "paid"}, forwarded=address))[0] for address in (b"198.51.100.1",) * 2]
    assert statuses == [200, 429]
    assert (await sent(app, {"nonce": "paid"}, forwarded=b"198.51.100.2"))[0] == 200
    with pytest.raises(RateLimited):
        counted.check("198.51.100.1", "payment_confirm")


async def test_a_client_without_an_address_is_counted_too():
    app = watch(most=1)
    assert [(await sent(app, {"nonce": "paid"}, client=None))[0] for _ in range(2)] == [200, 429]


def test_each_stands_at_its_own_path_and_nothing_else_does():
    assert mounted(SIMULATED, "http://w").keys() == {"/buy/payment", "/buy/demo-payment"}
    assert mounted(replace(FACTS, sales=Sales()), "http://w").keys() == {"/buy/payment"}
