"""Two real servers on one PostgreSQL, as chats meet them: paying by a link, and being told when something happens."""

import base64
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.buying import bought
from tests.live.processes import Program, Sim, control
from tests.live.test_events import EventInbox
from tests.live.test_shared_database import Shop, client_of, instances, open_shop
from tests.mcp.service import asked, headers_for
from tests.requirements import proves
from toolserver.mcp import messages

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

TOOL, PRICE = "premium_macro", 2
SLOT_S = 300
QUIET_S = 4.0  # longer than the timer of a server lets what is due wait
ACCEPT = {"buy": {"action": "accept"}}
OPENS = {messages.CAPABILITIES_KEY: {"elicitation": {"url": {}}}}


def call(at: Program, *, token: str | None = None, **params: Any) -> dict[str, Any]:
    """The result of a server for a modern client, which can open addresses; empty if it refuses the message."""
    message = asked("tools/call", {"name": TOOL, "arguments": {}, "_meta": OPENS, **params}, modern=True)
    headers = headers_for(message, messages.MODERN)
    headers |= {} if token is None else {"authorization": f"Bearer {token}"}
    answer = httpx.post(f"{at.url}/api/mcp", json=message, headers=headers, timeout=30, trust_env=False)
    found: dict[str, Any] = answer.json().get("result", {})
    return found


@proves("elicitation.instances")
def test_what_one_server_asks_for_is_paid_at_another_and_answered_by_any_once(shop: Shop) -> None:
    with instances(shop, 2) as (first, second):
        token = bought(first, shop.world.url)
        question = call(first)
        assert question["resultType"] == "input_required"
        link = httpx.URL(question["inputRequests"]["buy"]["params"]["url"]).params["p"]
        with client_of(second, token) as browser:
            described = httpx.post(f"{second.url}/buy/call", json={"link": link}, trust_env=False).json()
            assert f"the code {described['code']}" in question["inputRequests"]["buy"]["params"]["message"]
            paid = browser.post("/buy/call", json={"link": link})
            assert (paid.status_code, paid.json()) == (200, {"paid": True, "credits": PRICE})
            again = {"requestState": question["requestState"], "inputResponses": ACCEPT}
            answered = call(second, **again)
            assert (answered["resultType"], answered["isError"]) == ("complete", False)
            for at in (first, second):
                assert call(at, **again)["isError"] is True, "a link is for one call"
            assert browser.get("/api/payment/balance").json()["credits"] == 100 - PRICE
        shop.require_right_books()


@proves("elicitation.instances")
def test_what_one_server_asks_for_an_account_is_bought_at_another_by_its_token_or_its_cookie(shop: Shop) -> None:
    with instances(shop, 2) as (first, second), control(shop.world.url) as sim:
        token, stranger = bought(first, shop.world.url, 1), bought(second, shop.world.url, 1)
        spend_all(first, token)
        question = call(first, token=token)
        assert question["resultType"] == "input_required"
        link = httpx.URL(question["inputRequests"]["buy"]["params"]["url"]).params["p"]
        with client_of(first, stranger) as other:
            assert other.post("/buy/call", json={"link": link}).status_code == 409
            remember(other, stranger)
            for at in (first, second):
                refused = other.post(f"{at.url}/buy/call", json={"link": link, "amount_usd": 1})
                assert refused.json()["error"] == "payer_proof_required"
        with client_of(second, token) as owner:
            assert owner.post("/buy/call", json={"link": link}).json() == {"proved": True}
            remember(owner, token)
            for at in (first, second):
                assert owner.post(f"{at.url}/buy/call", json={"link": link}).json()["remembered"] is True
            offer = owner.post("/buy/call", json={"link": link, "amount_usd": 1}).json()
            sim.put("clock", {"speed": 30})
            paid = sim.paid(offer["transfer"]["wallet"], 1)
            claim = {"link": link, "tx_hash": paid, "nonce": offer["transfer"]["memo"]}
            for at in (first, second):  # the second time tells the same
                said = owner.post(f"{at.url}/buy/call", json=claim)
                assert (said.status_code, said.json()) == (200, {"credits": 50, "late": False})
            sim.put("clock", {"speed": 1})
        again = {"requestState": question["requestState"], "inputResponses": ACCEPT}
        assert call(second, token=token, **again)["isError"] is False
        assert call(first, token=stranger, **again) == {}, "a state of an account is its own"
        for at, left in ((first, 50 - PRICE), (second, 50 - PRICE)):
            with client_of(at, token) as owner:
                assert owner.get("/api/payment/balance").json()["credits"] == left
        shop.require_right_books()


@proves("elicitation.cookie", "elicitation.instances")
def test_a_cookie_that_is_not_of_the_account_or_no_longer_buys_nothing_at_any_server(shop: Shop) -> None:
    with instances(shop, 2) as (first, second):
        token, stranger = bought(first, shop.world.url, 1), bought(second, shop.world.url, 1)
        spend_all(first, token)
        link = httpx.URL(call(first, token=token)["inputRequests"]["buy"]["params"]["url"]).params["p"]
        cookie, other = remembered_at(first, token), remembered_at(second, stranger)
        name, _, value = cookie.partition("=")
        middle = len(value) // 2
        another = "A" if value[middle] != "A" else "B"
        wrong = {
            "none": "",
            "of another account": other,
            "of another name": f"x{cookie}",
            "changed in the middle": f"{name}={value[:middle]}{another}{value[middle + 1 :]}",
            "cut": cookie[:-4],
            "longer": f"{cookie}AAAA",
            "begun by another": f"{name}={other.partition('=')[2][:middle]}{value[middle:]}",
            "a link": f"{name}={link}",
            "a token": f"{name}={token}",
            "the account": f"{name}={hashlib.sha256(token.encode()).hexdigest()}",
        }
        for at in (first, second):
            assert offer_for(at, link, cookie) == (200, None)
            outcomes = {kind: offer_for(at, link, each) for kind, each in wrong.items()}
            assert outcomes == dict.fromkeys(wrong, (409, "payer_proof_required"))
        shop.command("ledger", "revoke", hashlib.sha256(token.encode()).hexdigest()[:16], "--reason", "lost")
        for at in (first, second):  # the cookie outlives its token and buys nothing more
            assert offer_for(at, link, cookie) == (402, "expired")
            assert offer_for(at, link, other) == (409, "payer_proof_required")
        shop.require_right_books()


@proves("elicitation.cookie")
def test_a_copy_of_a_cookie_that_was_forgotten_can_pay_for_the_account_and_nothing_else(shop: Shop) -> None:
    """The service stores nothing of browsers. So a copy counts until its end, and shows nothing of the account."""
    with instances(shop, 2) as (first, second):
        token = bought(first, shop.world.url, 1)
        spend_all(first, token)
        asked_for = call(first, token=token)["inputRequests"]["buy"]["params"]["url"]
        link, single = (httpx.URL(url).params["p"] for url in (asked_for, link_of_one_call(second)))
        copy = remembered_at(first, token)
        forgotten = send_cookie(first, "/account/browser", copy, remember=False)
        assert "Max-Age=0" in forgotten.headers["set-cookie"]
        for at in (first, second):
            offer = send_cookie(at, "/buy/call", copy, link=link, amount_usd=1).json()
            assert offer.keys() == {"credits", "transfer"}
            assert token not in str(offer)
            assert offer_for(at, single, copy) == (409, "payer_proof_required")
            assert send_cookie(at, "/buy/call", copy, link=single).json()["account"] is False
            for path in ("/api/payment/balance", "/api/pro/macro", "/api/payment/allowances"):
                answer = httpx.get(at.url + path, headers={"cookie": copy}, trust_env=False)
                assert answer.status_code in (401, 402), path


def link_of_one_call(at: Program) -> str:
    return str(call(at)["inputRequests"]["buy"]["params"]["url"])


def remembered_at(at: Program, token: str) -> str:
    """The cookie, name and value, of a browser that is remembered for the account of a token."""
    with client_of(at, token) as client:
        answer = client.post("/account/browser", json={"remember": True})
    return str(answer.headers["set-cookie"].partition(";")[0])


def send_cookie(at: Program, path: str, cookie: str, **message: Any) -> httpx.Response:
    return httpx.post(at.url + path, json=message, headers={"cookie": cookie}, timeout=30, trust_env=False)


def offer_for(at: Program, link: str, cookie: str) -> tuple[int, str | None]:
    """The status and the code of the refusal, if it is refused, of buying by a link with a cookie."""
    answer = send_cookie(at, "/buy/call", cookie, link=link, amount_usd=1)
    return answer.status_code, answer.json().get("error")


def spend_all(at: Program, token: str) -> None:
    """Call the tool until the token cannot pay for it."""
    with client_of(at, token) as client:
        while client.get("/api/payment/balance").json()["credits"] >= PRICE:
            assert client.get("/api/pro/macro").status_code == 200


def remember(client: httpx.Client, token: str) -> None:
    """Let the browser be remembered for the account of a token; from now on it sends only the cookie."""
    answer = client.post("/account/browser", json={"remember": True})
    assert answer.json()["remembered"] is True
    assert token not in answer.headers["set-cookie"]
    del client.headers["authorization"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path) as opened:
        yield opened


@pytest.fixture
def secret() -> str:
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


@pytest.fixture
def inbox(secret: str) -> Iterator[EventInbox]:
    made = EventInbox(secret, is_ahead=True)
    yield made
    made.close()


class Watch:
    """A subscription to an event, and the time of the world that passes."""

    def __init__(self, shop: Shop, sim: Sim, inbox: EventInbox, token: str, secret: str) -> None:
        self.shop, self.sim, self.inbox, self.token, self.secret = shop, sim, inbox, token, secret

    def subscribe(self, at: Program, name: str, **arguments: Any) -> str:
        delivery = {"mode": "webhook", "url": self.inbox.url, "secret": self.secret}
        message = asked("events/subscribe", {"name": name, "arguments": arguments, "delivery": delivery})
        with client_of(at, self.token) as client:
            answer = client.post("/api/mcp", json=message).json()
            assert "result" in answer, answer
            (listed,) = client.get("/api/pro/subscriptions").json()["subscriptions"]
        return str(listed["id"])

    def pass_slot(self, id: str, events: int) -> None:
        """Let a slot pass. After it, so many events have arrived in all, and no more come."""
        self.sim.put("clock", {"advance_s": SLOT_S})
        time.sleep(1.5)  # servers ask the world for its time twice a second
        self.shop.fire([id])
        until = time.monotonic() + 30
        while len(self.inbox.events) < events and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(QUIET_S)
        assert len(self.inbox.events) == events

    def check_charges(self, at: Program) -> None:
        """Each event that arrived cost one credit, and its receipt is of the bytes that arrived."""
        with client_of(at, self.token) as client:
            for (headers, _), body in zip(self.inbox.events, self.inbox.bodies, strict=True):
                receipt = client.get(f"/api/receipt/{headers['X-Service-Receipt-Id']}").json()["receipt"]
                assert (receipt["kind"], receipt["credits_charged"]) == ("webhook", 1)
                assert receipt["response_sha256"] == hashlib.sha256(body).hexdigest()
                verdict = client.post("/api/receipt/verify", json={"receipt": receipt}).json()
                assert verdict["valid"] is True
            assert client.get("/api/payment/balance").json()["credits"] == 100 - len(self.inbox.events)
        self.shop.require_right_books()


@pytest.fixture
def watch(shop: Shop, inbox: EventInbox, secret: str) -> Iterator[Watch]:
    with control(shop.world.url) as sim:
        yield Watch(shop, sim, inbox, "", secret)


@proves("events.once", "events.quiet", "webhook.standard")
def test_tell_me_when_bitcoin_falls_below_90_000(shop: Shop, watch: Watch) -> None:
    def put_price(usd: float) -> None:
        watch.sim.put("values", {"key": "price.BTC", "value": usd})

    put_price(95_000)
    with instances(shop, 2) as (first, second):
        watch.token = bought(first, shop.world.url)
        id = watch.subscribe(first, "price.crossed", symbol="BTC", below=90_000)
        watch.pass_slot(id, 0)
        put_price(89_500)
        watch.pass_slot(id, 1)
        put_price(88_000)
        watch.pass_slot(id, 1)  # still below
        watch.check_charges(second)
    with instances(shop, 2) as (_, second):
        put_price(87_000)
        watch.pass_slot(id, 1)  # still below, over a restart
        put_price(95_000)
        watch.pass_slot(id, 1)  # back again
        watch.sim.fault("*", "status", code=503)
        put_price(80_000)
        watch.pass_slot(id, 1)  # the last price that anybody knows is stale
        watch.sim.heal()
        watch.pass_slot(id, 2)
        watch.check_charges(second)
    [(_, event), (_, later)] = watch.inbox.events
    assert event["data"]["items"][0]["price"] == pytest.approx(89_500, rel=0.01)
    assert later["data"]["items"][0]["price"] == pytest.approx(80_000, rel=0.01)
    assert "untrusted" not in str(event)


@proves("events.once")
def test_ten_earthquakes_in_a_slot_are_one_delivery_for_one_credit(shop: Shop, watch: Watch) -> None:
    with instances(shop, 2) as (first, second):
        watch.token = bought(first, shop.world.url)
        id = watch.subscribe(first, "earthquake.new", min_magnitude=8)
        watch.pass_slot(id, 0)
        for number in range(10):
            at = watch.sim.get("clock")["now"] - number  # of injected earthquakes, the time is the name
            watch.sim.inject("earthquake", magnitude=8 + number / 100, lat=number, lon=10, at=at)
        watch.pass_slot(id, 1)
        watch.pass_slot(id, 1)
        watch.check_charges(second)
    [(_, event)] = watch.inbox.events
    assert len(event["data"]["items"]) == 10
