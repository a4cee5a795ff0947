"""What is sold: which answers are charged, what a receipt says of a call, and results that are kept as bytes."""

import hashlib
from dataclasses import replace

import pytest

from tests.calls.parts import RICH
from tests.calls.toy import premium_report
from toolserver.calls.arguments import Call, build_cache_key
from toolserver.calls.paid_call import (
    PaidCall,
    PaidCallResult,
    describe_body,
    describe_sale,
    split_sale,
    unpack_sale,
)
from toolserver.calls.pipeline import Outcome
from toolserver.calls.response import ChargeNote, RenderedResponse, find_no_charge_reason, with_note
from toolserver.core.caller import Caller, token_hash
from toolserver.money.ledger.state import Settlement
from toolserver.registry.registry import operation_of

BODY = b'{"one":1,"_meta":{}}'
REPORT = operation_of(premium_report)
SOLD = PaidCallResult(RenderedResponse(b"{}", 1.0, 2.0, None), 3, 97, None, "rcpt_1", "a.b.c")
SETTLED = Settlement("call_1", 2, 98, None, "posted", False)


def rendered(**facts):
    return RenderedResponse(BODY, 1000.0, 1060.0, 990.0, **facts)


def call(transport="rest", operation=REPORT):
    sent = {"history": "30d"}
    caller = Caller("192.0.2.1", RICH, transport=transport, nonce="n1")
    arguments = operation.arguments(**sent)
    return PaidCall(Call(operation, arguments, build_cache_key(operation, arguments), caller, sent), RICH, "call_1")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"no_charge": "empty_result"}, "empty_result"),
        ({"stale": True, "no_charge": "empty_result"}, "stale_data"),
        ({"nothing": True, "stale": True, "no_charge": "empty_result"}, "5xx"),
    ],
)
def test_failed_comes_before_stale_and_stale_before_empty(facts, reason):
    assert find_no_charge_reason(rendered(**facts)) == reason


@pytest.mark.parametrize("transport", ["rest", "mcp", "stdio"])
def test_a_receipt_covers_the_bytes_that_are_handed_over(transport):
    caller = call(transport).call.caller
    for charged, remaining in ((2, 98), (0, None)):
        result = PaidCallResult(rendered(), charged, remaining, None, "rcpt_1")
        sent = BODY if transport == "rest" else with_note(BODY, result.note)
        signed = describe_body(caller, rendered(), charged, remaining, "rcpt_1")
        assert signed == (hashlib.sha256(sent).hexdigest(), len(sent))


def test_an_answer_says_what_its_call_cost_where_somebody_s_credits_are_concerned():
    answer = rendered()
    assert PaidCallResult(answer, 2, 98, None, "rcpt_1").note == ChargeNote(2, 98, "rcpt_1")
    assert PaidCallResult(answer, 0, 98).note == ChargeNote(0, 98)
    assert PaidCallResult(answer, 0, None, "stale_data", "rcpt_1").note == ChargeNote(0, None, "rcpt_1")
    assert PaidCallResult(answer, 2, None).note == ChargeNote(2)
    assert PaidCallResult(answer, 0, None).note is None


def test_a_receipt_says_what_was_asked_charged_and_left():
    sale = describe_sale(call(), SETTLED, None, captured_at=990.0)

    assert (sale.call_id, sale.owner, sale.endpoint) == ("call_1", token_hash(RICH).hex(), REPORT.endpoint)
    assert (sale.cost, sale.charged, sale.remaining, sale.pending) == (2, 2, 98, False)
    assert (sale.sla_s, sale.nonce, sale.captured_at) == (300, "n1", 990.0)


def test_without_a_settlement_nothing_is_claimed_to_be_charged():
    sale = describe_sale(call(), None, "5xx", status=500)

    assert (sale.charged, sale.remaining, sale.pending, sale.reason) == (0, None, True, "5xx")


def test_a_result_reads_back_as_it_was_packed():
    for result in (
        PaidCallResult(rendered(), 2, 98, None, "rcpt_x", "a.b.c"),
        PaidCallResult(rendered(stale=True), 0, None, "stale_data"),
    ):
        again = unpack_sale(split_sale(result).whole)
        assert replace(again, rendered=result.rendered) == result
        assert (again.rendered.payload, again.rendered.stale) == (BODY, result.rendered.stale)
        assert again.rendered.etag == result.rendered.etag


@pytest.mark.parametrize(("sla_s", "told_s"), [(None, 60), (0, 0), (300, 300)])
def test_a_receipt_says_the_age_that_was_promised_or_how_long_the_answer_lasts(sla_s, told_s):
    sale = describe_sale(call(operation=replace(REPORT, sla_s=sla_s)), SETTLED, None)
    assert sale.sla_s == told_s


def test_an_outcome_says_what_was_charged_and_what_is_left():
    outcome = Outcome.of_sale(SOLD, Caller(client="192.0.2.1"))

    assert (outcome.charged, outcome.credits_remaining, outcome.no_charge) == (3, 97, None)
    assert (outcome.receipt_id, outcome.receipt, outcome.rendered) == ("rcpt_1", "a.b.c", SOLD.rendered)


def test_who_asks_for_a_reference_gets_the_name_of_the_receipt_alone():
    outcome = Outcome.of_sale(SOLD, Caller(client="192.0.2.1", receipt_reference=True))

    assert (outcome.receipt_id, outcome.receipt) == ("rcpt_1", None)


def test_a_sale_without_a_caller_always_carries_its_receipt():
    assert Outcome.of_sale(SOLD).receipt == "a.b.c"


def test_why_nothing_was_charged_is_told():
    assert Outcome.of_sale(replace(SOLD, charged=0, reason="stale_data")).no_charge == "stale_data"
