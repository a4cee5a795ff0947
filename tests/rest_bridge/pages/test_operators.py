"""The operators' page: what needs a person stands first, money is said in its unit, and it works without a script."""

import pytest

from rest_bridge.pages.operators import operators_page, write_advice_verdict, write_usd
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from tests.rest_bridge.reports import CASE, money_of, report_of
from tests.rest_bridge.statuses import source_of, summed


def shown(**more):
    return Page(operators_page(FACTS, report_of(TINY, **more)).body)


def words_of(page):
    return " ".join(page.text.split())


def test_it_is_whole_and_has_neither_script_nor_form():
    page = shown()
    assert page.faults == []
    assert (page.scripts, page.names.count("form"), page.names.count("h1")) == ([], 0, 1)
    assert [link for link in page.links if link.startswith("/static/")]


def test_money_of_the_day_is_told():
    words = words_of(shown())
    for phrase in (
        "Nothing needs your attention.",
        "$5.00",
        "250",
        "1,238",
        "by transfer15.00",
        "Offers not paid yet2$7.50",
    ):
        assert phrase in words, words
    assert "uncredited" not in words  # no such payment, no such row


def test_urgent_advice_leads_and_advice_alone_needs_nobody():
    urgent = {"code": "books_disagree", "urgent": True, "told": "The books do not agree."}
    calm = {"code": "no_contact", "urgent": False, "told": "Set a contact."}
    assert "1 finding needs your attention. " in words_of(shown(advice=[urgent, calm]))
    assert "Needs you The books do not agree. books_disagree" in words_of(shown(advice=[urgent, calm]))
    assert "Nothing needs your attention; there is some advice." in words_of(shown(advice=[calm]))


def test_a_payment_to_decide_stands_with_its_reason_and_transaction():
    words = words_of(shown(money=money_of(cases=[CASE])))
    assert "money that bought nothing2027-01-15 07:00:00 UTC0.50below_minimum0xabab" in words


def test_a_payment_that_is_not_settled_and_a_webhook_that_fails_stand_in_tables():
    payment = {"payer": "0x1", "amount_usd": "2.000000", "for": "a top-up", "begun": CASE["at"], "age_seconds": 5}
    hook = {"id": "sub_1", "endpoint": "briefing", "state": "paused", "failures": 20, "reason": "http_500"}
    hooks = {"active": 0, "failing": 0, "paused": 1, "next_due_at": None, "unwell": [hook]}
    page = shown(
        money=money_of(unsettled=[payment | {"block": 1, "tx": None}]), pending={"webhooks": hooks, "reserved": None}
    )
    words = words_of(page)
    assert "a top-up2027-01-15 07:00:00 UTC2.00none sent" in words
    assert "sub_1briefingpaused20http_500" in words
    assert "Calls with reserved credits" not in words


def test_sources_without_a_fault_are_left_to_the_public_page():
    down = source_of("B.two", "down", last="timeout", past_day=summed(4, 4))
    page = shown(sources=[down, source_of("A.one", "up", past_day=summed(5))])
    words = words_of(page)
    assert "B.two down: timeout" in words
    assert "A.one" not in words
    assert "https://data.example/sources#B.two" in page.links


def test_what_upstreams_announce_is_text():
    page = shown(announced=[{"source": "A.one", "kind": "sunset", "text": "<script>alert(1)</script>", "seen_at": 1.0}])
    assert page.scripts == []
    assert "announces sunset: <script>alert(1)</script>" in page.text


def test_where_money_or_log_are_absent_it_says_why():
    words = words_of(
        shown(money={"absent": "Nothing is sold here."}, log=None, pending={"webhooks": None, "reserved": None})
    )
    assert "Nothing is sold here." in words
    assert "Log of uncharged calls" not in words
    forked = words_of(shown(log={"trouble": "another root", "note": None}))
    assert "another root" in forked


@pytest.mark.parametrize(("amount", "words"), [("5.000000", "5.00"), ("0.001234", "0.001234"), (1234.5, "1,234.50")])
def test_cents_hide_nothing(amount, words):
    assert write_usd(amount) == words


def test_a_source_whose_day_was_not_whole_is_shown_although_it_is_up():
    page = shown(sources=[source_of("A.one", "up", past_day=summed(5, 0, 1)), source_of("B.two", "up")])
    assert "A.one" in words_of(page)
    assert "B.two" in words_of(page)  # nobody asked it


@pytest.mark.parametrize(
    ("urgent", "calm", "verdict"),
    [
        (0, 0, "Nothing needs your attention."),
        (0, 2, "Nothing needs your attention; there is some advice."),
        (1, 1, "1 finding needs your attention."),
        (2, 0, "2 findings need your attention."),
    ],
)
def test_the_verdict_counts_what_is_urgent(urgent, calm, verdict):
    assert write_advice_verdict({"advice": [{"urgent": True}] * urgent + [{"urgent": False}] * calm}) == verdict


def test_every_amount_below_a_cent_is_told_with_six_decimals():
    assert [write_usd(amount) for amount in (0, "0.005", 1234567, "0.1")] == [
        *("0.00", "0.005000", "1,234,567.00", "0.10")
    ]
