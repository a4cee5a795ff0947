"""/buy: what the page offers by what this very server sells."""

import json
import re
from dataclasses import replace

import pytest

from rest_bridge.pages.buy import buy_page
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import PurchaseTerms, Sales

OWN, SISTER = Sales(), Sales(terms=None)


def shown(sales):
    return Page(buy_page(REGISTRY, replace(FACTS, sales=sales)).body)


def told(sales):
    body = buy_page(REGISTRY, replace(FACTS, sales=sales)).body.decode()
    script = re.search(r'id="shop">(.*?)</script>', body, re.DOTALL)
    return json.loads(script[1])


def test_the_script_is_told_price_and_life_of_an_offer_and_of_no_demo_wallet():
    stated = told(replace(OWN, terms=PurchaseTerms(quote_minutes=7)))
    assert (stated["credits_per_usd"], stated["quote_s"], stated["demo_pay"]) == (50, 420, None)
    assert "is valid for 7 minutes" in shown(replace(OWN, terms=PurchaseTerms(quote_minutes=7))).text
    assert (told(SISTER)["quote_s"], told(SISTER)["pay_call"]) == (None, None)


def test_the_demo_wallet_stands_there_only_where_the_chain_is_simulated():
    assert "demo wallet" not in shown(OWN).text
    assert "wallet in this browser" in shown(OWN).text
    assert "Pay from the demo wallet" in shown(replace(OWN, demo_wallet=True)).text
    assert (
        "wallet in this browser" not in "".join(shown(replace(OWN, demo_wallet=True)).words[:-1]).split("Sign with")[0]
    )
    assert told(replace(OWN, demo_wallet=True))["demo_pay"] == "/buy/demo-payment"


@pytest.mark.parametrize("sales", [None, Sales(transfer=False, x402_most_usd=5)])
def test_where_nothing_is_sold_by_transfer_it_says_so_and_runs_nothing(sales):
    page = shown(sales)
    assert "sold by transfer" in page.text or "sells no credits" in page.text
    assert not any(script.endswith("/buy.js") for script in page.scripts)
    assert "form" not in page.names


def test_calls_of_chats_are_paid_only_where_their_links_are_made():
    assert "A chat asks you to pay" in shown(OWN).text
    assert "A chat asks you to pay" not in shown(SISTER).text


def test_without_javascript_it_leads_to_the_four_steps():
    page = shown(OWN)
    assert "noscript" in page.names
    assert "/docs/payments" in page.links


@pytest.mark.parametrize(
    ("sales", "watch"),
    [
        (OWN, "/buy/payment"),
        (SISTER, None),
        (Sales(terms=PurchaseTerms(shared_wallet=True)), None),
        (Sales(transfer=False), None),
        (None, None),
    ],
)
def test_payments_are_watched_only_where_an_address_belongs_to_one_purchase(sales, watch):
    assert told(sales)["watch"] == watch
    assert ("detects it automatically" in shown(sales).text) == (watch is not None)


def test_the_script_knows_every_price_and_a_first_call():
    assert told(OWN) == {
        "credits_per_usd": 50,
        "prices": [2],
        "demo_pay": None,
        "watch": "/buy/payment",
        "quote_s": 1800,
        "pay_call": "/buy/call",
        "link": "p",
        "qr": "/buy/qr.svg",
        "first": {"path": "/api/pro/report", "title": "A report", "price": "2 credits"},
        "first_call": "https://data.example/api/pro/report",
    }
    assert told(None)["quote_s"] is None
    assert any(script.endswith("/buy.js") for script in shown(OWN).scripts)


def test_where_every_paid_tool_needs_an_argument_the_first_call_asks_for_the_balance():
    needy = replace(TINY["sights"], name="premium_sights", path="/api/pro/sights", tier=Tier.PREMIUM, credits=3)
    body = buy_page(Registry([needy]), replace(FACTS, sales=OWN)).body.decode()
    shop = json.loads(re.search(r'id="shop">(.*?)</script>', body, re.DOTALL)[1])
    assert shop["first"] is None
    assert (shop["first_call"], shop["prices"]) == ("https://data.example/api/payment/balance", [3])
