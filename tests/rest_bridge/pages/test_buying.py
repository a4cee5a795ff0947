"""What the page /buy asks: a wallet of the demo only where the chain is simulated, payments where they can be seen."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from rest_bridge.pages.buy import demo_wallet, mount_buying, payment_watch
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS
from tests.requirements import proves
from toolserver.calls.payment_links import LIFE_S, PaymentLinks
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses, token_hash
from toolserver.errors import ChainUnavailable, RateLimited
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.state import AccountRef
from toolserver.money.purchases.credit_sales import Claim, CreditedPurchase, NoCreditSales, PurchaseQuote
from toolserver.money.receipts.keys import KeyRing, read_keys, revoke_key, rotate_keys, write
from toolserver.registry.site_facts import DEMO_PAY, PAY_CALL, REMEMBERED, WATCH, PurchaseTerms, Sales

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


async def sent(app, body, method="POST", *, client=("192.0.2.1", 1), forwarded=None, token=None, more=()):
    said = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message):
        said.append(message)

    headers = [(b"x-forwarded-for", forwarded)] if forwarded else []
    headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
    headers += more
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


class SoldTopUps(NoCreditSales):
    """Sells to accounts, and keeps to whom."""

    def __init__(self):
        self.quoted, self.confirmed = [], []

    async def quote_topup(self, who, amount_usd):
        self.quoted.append((who, amount_usd))
        ends = datetime(2027, 1, 15, 0, 30, tzinfo=UTC)
        return PurchaseQuote("0xa", "svc_buy_1", 5_000_000, 250, ends, "0xc", "ethereum:0xa")

    async def confirm_topup(self, who, claim):
        self.confirmed.append((who, claim))
        return CreditedPurchase("", 250)


class Chats:
    """A page that pays for calls, its ledger and its clock."""

    def __init__(self, folder, most=60):
        self.clock = ManualClock(datetime(2027, 1, 15, tzinfo=UTC))
        self.ledger = MemoryLedger(self.clock)
        for token, credits in ((PAYER, 100), (STRANGER, 50), (BEGGAR, 0)):
            self.ledger.fund(token, credits)
        self.links = PaymentLinks(self.ledger, KeyRing(folder / "keys.json", self.clock), REGISTRY, self.clock)
        self.sold = SoldTopUps()
        apps = mount_buying(FACTS, self.sold, None, limits(most), Addresses([]), self.links, self.clock)
        self.app, self.remembering = apps[PAY_CALL], apps[REMEMBERED]

    def link(self, account=None):
        return self.links.make(ORACLE, account and token_hash(account).hex())

    async def post(self, link, token=None):
        return (await sent(self.app, {"link": link}, token=token))[:2]

    async def remember(self, token, *, wanted=True, more=()):
        """Ask for a cookie: the status, and the header that sets it."""
        status, _, headers = await sent(self.remembering, {"remember": wanted}, token=token, more=more)
        return status, headers.get(b"set-cookie", b"").decode()

    async def buy(self, made, cookie, *, more=(), **members):
        """Post to a link from a browser with a cookie."""
        headers = [(b"cookie", cookie.partition(";")[0].encode()), *more]
        return (await sent(self.app, {"link": made.text, **members}, more=headers))[:2]

    async def spend(self, secret):
        """Charge one call to the chat's secret."""
        await self.ledger.charge("call_1", secret, ORACLE.credits, endpoint=ORACLE.path)


@pytest.fixture
def chats(tmp_path):
    return Chats(tmp_path)


def test_links_are_answered_only_where_they_are_made(chats):
    assert PAY_CALL not in mounted(FACTS)
    apps = mount_buying(FACTS, None, None, limits(), Addresses([]), chats.links)
    assert {PAY_CALL, REMEMBERED} <= apps.keys()
    assert REMEMBERED not in mounted(FACTS)


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


# --- browsers that are remembered ---

NAME = "__Host-toolserver-buyer=" if FACTS.base_url.startswith("https:") else "toolserver-buyer="
CLAIM = {"tx_hash": "0x1", "nonce": "svc_buy_1"}


async def test_a_browser_is_remembered_only_for_a_token_and_the_cookie_holds_none(chats):
    status, cookie = await chats.remember(PAYER)
    assert status == 200
    assert cookie.startswith(NAME)
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"} <= set(cookie.split("; "))
    assert ("; Secure" in cookie) is FACTS.base_url.startswith("https:")
    for secret in (PAYER, token_hash(PAYER).hex(), token_hash(PAYER).hex()[:16]):
        assert secret not in cookie
    for token in (None, UNKNOWN, "nonsense"):
        assert await chats.remember(token) == (402, "")


@proves("elicitation.cookie")
async def test_a_remembered_browser_buys_for_its_account_without_a_token(chats):
    made, (_, cookie) = chats.link(PAYER), await chats.remember(PAYER)
    assert (await chats.buy(made, cookie))[1]["remembered"] is True
    status, offered = await chats.buy(made, cookie, amount_usd=5)
    assert (status, offered["credits"], offered["transfer"]["memo"]) == (200, 250, "svc_buy_1")
    assert await chats.buy(made, cookie, **CLAIM) == (200, {"credits": 250, "late": False})
    account = AccountRef(token_hash(PAYER).hex())
    assert chats.sold.quoted == [(account, Decimal(5))]
    assert chats.sold.confirmed == [(account, Claim("0x1", "svc_buy_1", None, None))]
    for bad in ({"amount_usd": "5"}, {"amount_usd": True}, {"tx_hash": 1, "nonce": "a"}, {"tx_hash": "a"}):
        assert (await chats.buy(made, cookie, **bad))[0] == 400


def changed(value):
    """The same with another last character."""
    return value[:-1] + ("A" if value[-1] != "A" else "B")


WRONG = {
    "none": lambda value: "",
    "tampered with": changed,
    "cut": lambda value: value[:-20],
    "too long": lambda value: value + "A" * 5000,
    "no base64": lambda value: NAME + "%%%",
    "of another name": lambda value: f"other-{value}",
}


async def refuses(chats, cookie, more=()):
    """Whether a cookie buys nothing for the account of a link, and is not taken for one of that account."""
    made = chats.link(PAYER)
    assert "remembered" not in (await chats.buy(made, cookie, more=more))[1]
    for members in ({"amount_usd": 5}, CLAIM):
        status, problem = await chats.buy(made, cookie, more=more, **members)
        assert (status, problem["error"]) == (409, "payer_proof_required")
    return chats.sold.quoted == chats.sold.confirmed == []


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
async def test_a_cookie_that_was_changed_buys_for_nobody(chats, change):
    _, cookie = await chats.remember(PAYER)
    assert await refuses(chats, change(cookie.partition(";")[0]))


@proves("elicitation.cookie")
async def test_a_cookie_of_somebody_else_buys_nothing_for_the_account_of_a_link(chats, tmp_path):
    """So nobody who is sent a link pays for its sender, whose link and cookie belong together, by having a cookie."""
    _, strangers = await chats.remember(STRANGER)
    _, elsewhere = await Chats(tmp_path / "another service").remember(PAYER)
    for cookie in (strangers, elsewhere, f"{NAME}{chats.link(PAYER).text}"):
        assert await refuses(chats, cookie)


async def test_a_page_of_another_site_buys_nothing_by_the_cookie(chats):
    _, cookie = await chats.remember(PAYER)
    for header in ((b"origin", b"https://evil.example"), (b"sec-fetch-site", b"cross-site")):
        assert await refuses(chats, cookie, more=[header])


async def test_a_cookie_ends_after_thirty_days_and_with_the_key_that_it_was_sealed_under(chats, tmp_path):
    _, cookie = await chats.remember(PAYER)
    chats.clock.advance(30 * 86_400 - 1)
    assert (await chats.buy(chats.link(PAYER), cookie))[1]["remembered"] is True
    chats.clock.advance(1)
    assert await refuses(chats, cookie)
    _, cookie = await chats.remember(PAYER)
    path = tmp_path / "keys.json"
    keys = read_keys(path)
    write(path, revoke_key(keys, keys[0].kid, chats.clock.time()))
    chats.clock.advance(60)  # a service looks at its keys now and then
    assert await refuses(chats, cookie)


async def test_a_cookie_of_an_account_pays_for_no_single_call(chats):
    made, (_, cookie) = chats.link(), await chats.remember(PAYER)
    assert (await chats.buy(made, cookie, amount_usd=5))[0] == 409
    assert (await chats.buy(made, cookie))[1]["account"] is False
    assert not await chats.ledger.knows(made.secret)


async def test_a_browser_can_be_forgotten_and_a_page_of_another_site_can_have_none_remembered(chats):
    status, cookie = await chats.remember(None, wanted=False)
    assert (status, "Max-Age=0" in cookie) == (200, True)
    assert await chats.remember(PAYER, more=[(b"sec-fetch-site", b"cross-site")]) == (400, "")
    assert await chats.remember(PAYER, wanted="yes") == (400, "")
    _, cookie = await chats.remember(PAYER)
    asks = [(b"cookie", cookie.partition(";")[0].encode())]
    _, said, _ = await sent(chats.remembering, {}, more=asks)
    assert said == {"remembered": True, "expires_at": "2027-02-14T00:00:00Z"}
    for others in ([], [*asks, (b"origin", b"http://localhost:8080")]):  # our page, opened under another name
        status, said, _ = await sent(chats.remembering, {}, more=others)
        assert (status, said) == (200, {"remembered": False, "expires_at": None})


async def test_other_instances_read_the_cookie_and_a_rotation_of_keys_leaves_it(chats, tmp_path):
    _, cookie = await chats.remember(PAYER)
    other = Chats(tmp_path)  # the same keys
    assert (await other.buy(other.link(PAYER), cookie))[1]["remembered"] is True
    path = tmp_path / "keys.json"
    write(path, rotate_keys(read_keys(path), chats.clock.time(), after_s=60))
    chats.clock.advance(90)
    assert (await chats.buy(chats.link(PAYER), cookie))[1]["remembered"] is True
