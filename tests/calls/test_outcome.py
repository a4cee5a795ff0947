"""The outcome of a sale, for a caller who wants the whole receipt or only its name."""

from toolserver.calls.paid_call import PaidCallResult
from toolserver.calls.pipeline import Outcome, describe_outcome
from toolserver.calls.response import RenderedResponse
from toolserver.core.caller import Caller

SOLD = PaidCallResult(RenderedResponse(b"{}", 1.0, 2.0, None), 3, 97, None, "rcpt_1", "a.b.c")


def test_an_outcome_says_what_was_charged_and_what_is_left():
    outcome = describe_outcome(SOLD, Caller(client="192.0.2.1"))

    assert (outcome.charged, outcome.credits_remaining, outcome.no_charge) == (3, 97, None)
    assert (outcome.receipt_id, outcome.receipt, outcome.rendered) == ("rcpt_1", "a.b.c", SOLD.rendered)


def test_who_asks_for_a_reference_gets_the_name_of_the_receipt_alone():
    outcome = describe_outcome(SOLD, Caller(client="192.0.2.1", receipt_reference=True))

    assert (outcome.receipt_id, outcome.receipt) == ("rcpt_1", None)


def test_a_sale_without_a_caller_always_carries_its_receipt():
    assert describe_outcome(SOLD, None).receipt == "a.b.c"


def test_why_nothing_was_charged_is_told():
    assert describe_outcome(SOLD._replace(charged=0, reason="stale_data"), None).no_charge == "stale_data"


def test_an_outcome_of_a_sale_says_nothing_of_limits_and_caches():
    assert describe_outcome(SOLD, None) == Outcome(
        SOLD.rendered,
        limit_states=[],
        credits_remaining=97,
        charged=3,
        no_charge=None,
        receipt_id="rcpt_1",
        receipt="a.b.c",
        hit=False,
        key=None,
        unchanged=False,
        settlement=None,
    )
