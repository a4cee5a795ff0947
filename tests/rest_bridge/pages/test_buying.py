"""What the page /buy asks: a wallet of the demo only where the chain is simulated, payments where they can be seen."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rest_bridge.pages.buy import call_payment, demo_wallet, mount_buying, payment_watch
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS
from toolserver.calls.payment_links import LIFE_S, PaymentLinks
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses, token_hash
from toolserver.errors import ChainUnavailable, RateLimited
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.receipts.keys import KeyRing
from toolserver.registry.site_facts import DEMO_PAY, PAY_CALL, WATCH, PurchaseTerms, Sales

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


async def sent(app, body, method="POST", *, client=("192.0.2.1", 1), forwarded=None, token=None):
    said = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message):
        said.append(message)

    headers = [(b"x-forwarded-for", forwarded)] if forwarded else []
    headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
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


# --- links to calls in chats ---

PAYER, STRANGER, BEGGAR, UNKNOWN = (f"svc_live_{digit * 64}" for digit in "1234")
ORACLE = next(operation for operation in REGISTRY if operation.credits)


class Chats:
    """A page that pays for calls, its ledger and its clock."""

    def __init__(self, folder, most=60):
        self.clock = ManualClock(datetime(2027, 1, 15, tzinfo=UTC))
        self.ledger = MemoryLedger(self.clock)
        for token, credits in ((PAYER, 100), (STRANGER, 50), (BEGGAR, 0)):
            self.ledger.fund(token, credits)
        self.links = PaymentLinks(self.ledger, KeyRing(folder / "keys.json", self.clock), REGISTRY, self.clock)
        self.app = call_payment(self.links, FACTS, limits(most), Addresses([]))

    def link(self, account=None):
        return self.links.make(ORACLE, account and token_hash(account).hex())

    async def post(self, link, token=None):
        return (await sent(self.app, {"link": link}, token=token))[:2]

    async def spend(self, secret):
        """Charge one call to the chat's secret."""
        await self.ledger.charge("call_1", secret, ORACLE.credits, endpoint=ORACLE.path)


@pytest.fixture
def chats(tmp_path):
    return Chats(tmp_path)


def test_links_are_answered_only_where_they_are_made(chats):
    assert PAY_CALL not in mounted(FACTS)
    assert PAY_CALL in mount_buying(FACTS, None, None, limits(), Addresses([]), chats.links)


@pytest.mark.parametrize("account", [None, PAYER], ids=["of one call", "of an account"])
async def test_a_link_tells_tool_price_code_and_time_and_no_account(chats, account):
    made = chats.link(account)
    status, asked = await chats.post(made.text)
    times = {"asked_at": "2027-01-15T00:00:00Z", "expires_at": "2027-01-15T00:30:00Z"}
    about = {"tool": ORACLE.name, "title": ORACLE.title, "credits": ORACLE.credits, "code": made.link.code}
    assert (status, asked) == (200, about | times | {"account": account is not None})


async def test_a_link_of_one_call_gives_its_chat_the_price_of_one_call_for_half_an_hour(chats):
    made = chats.link()
    assert not await chats.ledger.knows(made.secret)
    assert await chats.post(made.text, PAYER) == (200, {"paid": True, "credits": ORACLE.credits})
    assert await chats.ledger.balance(made.secret) == ORACLE.credits
    (allowance,) = await chats.ledger.list_allowances(PAYER)
    assert (allowance.credits, allowance.paths) == (ORACLE.credits, {ORACLE.path})
    assert allowance.expires_at == int(chats.clock.time() + LIFE_S) * 1000
    assert made.link.code in allowance.name


async def test_the_sender_of_a_link_gains_one_call_at_most_however_often_it_is_opened(chats):
    made = chats.link()
    for token in (PAYER, PAYER, STRANGER, PAYER):
        await chats.post(made.text, token)
    await chats.spend(made.secret)
    await chats.post(made.text, PAYER)
    assert await chats.ledger.balance(made.secret) == 0
    assert await chats.ledger.balance(PAYER) == 100 - ORACLE.credits
    assert await chats.ledger.balance(STRANGER) == 50


async def test_a_second_payer_is_told_that_the_call_is_paid_and_keeps_all_credits(chats):
    made = chats.link()
    await chats.post(made.text, PAYER)
    status, problem = await chats.post(made.text, STRANGER)
    assert (status, problem["error"]) == (409, "allowance_conflict")
    assert "keeps all its credits" in problem["detail"]
    assert await chats.ledger.list_allowances(STRANGER) == []


@pytest.mark.parametrize(
    ("token", "status", "code"),
    [(BEGGAR, 402, "insufficient_credits"), (UNKNOWN, 402, "invalid_token"), ("nonsense", 402, "invalid_token")],
)
async def test_a_token_that_cannot_pay_is_refused(chats, token, status, code):
    made = chats.link()
    said, problem = await chats.post(made.text, token)
    assert (said, problem["error"]) == (status, code)
    assert not await chats.ledger.knows(made.secret)


async def test_a_link_of_an_account_takes_only_a_token_of_that_account(chats):
    made = chats.link(PAYER)
    assert await chats.post(made.text, PAYER) == (200, {"proved": True})
    for token in (STRANGER, UNKNOWN, "nonsense"):
        status, problem = await chats.post(made.text, token)
        assert (status, problem["error"]) == (409, "payer_proof_required")
    assert made.secret is None
    assert await chats.ledger.list_allowances(PAYER) == []


async def test_a_link_that_has_expired_or_is_damaged_is_not_found(chats):
    made = chats.link()
    for text in ("", "A" * 100, made.text[:-1], made.text + "A", "A" * 1001, "é"):
        assert (await chats.post(text, PAYER))[0] == 404
    chats.clock.advance(LIFE_S)
    status, problem = await chats.post(made.text, PAYER)
    assert (status, problem["error"]) == (404, "not_found")
    assert "expired" in problem["detail"]


async def test_a_request_without_a_link_is_refused_and_requests_are_counted(tmp_path):
    chats = Chats(tmp_path, most=2)
    assert [(await sent(chats.app, {}))[0] for _ in range(3)] == [400, 400, 429]
