"""The consent page as HTML: what each state shows, nothing from elsewhere, and nothing that a name can inject."""

import re
from datetime import UTC, datetime

import pytest

from rest_bridge.pages.consent import make_consent_page
from rest_bridge.pages.qr import draw_qr
from rest_bridge.static_files import static_path
from tests.arranged import FACTS
from toolserver.core.consent_page import ConsentPayment, ConsentView

PAYMENT = ConsentPayment("0x1", "5", 250, "ethereum:0x1", datetime(2027, 1, 15, 8, 30, tzinfo=UTC), tx_hash="0xab")
SHOWN = {
    "action": "/api/mcp/auth/consent",
    "secret": "ab" * 32,
    "client": "Host",
    "target": "host.example",
    "credits": 250,
    "days": 30,
    "sells": True,
}


def drawn(step, **change):
    return make_consent_page(FACTS)(ConsentView(step, **(SHOWN | change))).decode()


@pytest.mark.parametrize("step", ["choose", "pay", "confirming", "bought", "closed"])
def test_every_state_is_a_page_without_script_and_without_anything_from_elsewhere(step):
    page = drawn(step, payment=PAYMENT, token="svc_live_1", title="Over", problem="why")
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "style=" not in page
    assert 'src="' not in page
    assert page.count("<h1>") == 1
    assert "why" in page


@pytest.mark.parametrize("step", ["pay", "confirming"])
def test_only_while_it_waits_it_has_a_script_and_loads_itself_anew_without(step):
    page = drawn(step, payment=PAYMENT, refresh_s=4, page="/c?request=1", watched=True, by_hash="/c?request=1&hash=1")
    assert re.findall(r"<script[^>]*>", page) == [f'<script type="module" src="{static_path("js/consent.js")}">']
    assert '<noscript><meta http-equiv="refresh" content="4; url=/c?request=1"></noscript>' in page
    assert f'<main data-step="{step}" data-page="/c?request=1" data-again="4">' in page
    assert ('href="/c?request=1&amp;hash=1"' in page) == (step == "pay")


def test_the_first_page_names_client_and_address_and_offers_both_ways():
    page = drawn("choose", identity="https://host.example/client")
    assert "https://host.example/client" in page
    assert page.count('method="post"') == 4, "a token, free, buying, cancelling"
    assert 'type="password"' in page
    assert 'value="buy"' in page
    assert 'value="buy"' not in drawn("choose", sells=False)
    assert "in that program" in drawn("choose", local=True)


def test_the_payment_says_where_how_much_and_until_when():
    page = drawn("pay", payment=PAYMENT)
    assert "5 USDC" in page
    assert "08:30 UTC on 15 January" in page
    assert 'href="ethereum:0x1"' in page
    assert "<svg" in page
    assert "why it waits" in drawn("pay", payment=PAYMENT._replace(review="why it waits"))


def test_waiting_shows_how_far_it_is_and_looks_again():
    page = drawn("confirming", payment=PAYMENT._replace(confirmations=1, required=3), refresh_s=4, page="/at")
    assert '<meta http-equiv="refresh" content="4; url=/at">' in page
    assert '<progress max="3" value="1"' in page
    assert "1 of 3 confirmations" in page
    assert "Looking for the transaction" in drawn("confirming", payment=PAYMENT)
    assert "refresh" not in drawn("choose")


def test_a_bought_token_is_shown_and_sent_along_but_only_there():
    assert drawn("bought", payment=PAYMENT, token="svc_live_1").count("svc_live_1") == 2


def test_names_and_problems_are_text():
    page = drawn("choose", client='"><script>alert(1)</script>', target="<b>", problem="<i>")
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_a_qr_code_is_dark_on_white_without_the_text():
    code = draw_qr("ethereum:0x1")
    assert code.startswith("<svg")
    assert "viewBox" in code
    assert "ethereum" not in code


def test_the_style_is_one_of_the_files_by_version():
    links = re.findall(r'href="(/static/[^"]+[.]css)"', drawn("choose"))
    assert links == [static_path("css/consent.css")]


def test_a_page_is_titled_by_its_client_and_a_closed_one_by_how_it_ended():
    assert "<title>Connect Host</title>" in drawn("choose", title="Over")
    assert "<title>Over</title>" in drawn("closed", title="Over")


def test_a_program_is_opened_by_a_link_that_says_where_it_leads():
    page = drawn("leave", back='cursor://x?code=1&state="><b>', target="an app on this device (cursor:)")
    assert "<title>Return to Host</title>" in page
    assert (
        '<a class="main" href="cursor://x?code=1&amp;state=&#34;&gt;&lt;b&gt;" rel="noreferrer">Open Host</a>' in page
    )
    assert "an app on this device (cursor:)" in page
    assert "<script" not in page
    assert "<form" not in page
    assert "http-equiv" not in page


def test_the_code_to_scan_is_that_of_this_payment_and_stands_only_where_it_is_to_be_paid():
    assert str(draw_qr(PAYMENT.uri)) in drawn("pay", payment=PAYMENT)
    assert 'class="qr"' not in drawn("confirming", payment=PAYMENT)
    assert 'class="qr"' not in drawn("bought", payment=PAYMENT, token="svc_live_1")


def test_it_says_what_a_dollar_buys_and_leads_to_how_it_works():
    page = drawn("choose")
    assert "one US dollar buys 50 credits" in page
    assert 'href="/docs/payments"' in page


def test_work_for_going_free_is_done_by_a_script_and_said_to_those_without_one():
    page = drawn("choose", challenge="20833-3-14-1-ab", work_bits=14)
    assert 'data-challenge="20833-3-14-1-ab" data-bits="14"' in page
    assert "js/consent_work.js" in page
    assert "needs JavaScript" in page
    assert "consent_work" not in drawn("choose")
