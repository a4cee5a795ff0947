"""Our terms as the owner reads them, and its replies in our terms."""

import pytest

from tests.money.ledger.ledgers import token
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.client.codec import (
    CHARGE_TTL_S,
    account,
    allowance_refusal,
    ask_allowances,
    denial,
    question,
    reservation,
    seconds,
    settlement,
)
from toolserver.money.ledger.client.http import OwnerRefusal
from toolserver.money.ledger.client.messages import AskAllowances, Committed, Validate, Validated
from toolserver.money.ledger.state import AccountRef


def test_an_account_is_named_by_its_token_or_by_its_reference():
    by_token = question(token(1), 2, service="b", call_id="c1", endpoint="/x", ttl_s=60)
    assert by_token == Validate(cost=2, call_id="c1", token=token(1), service="b", endpoint="/x", ttl_s=60)
    by_ref = question(AccountRef("acct_1"), 0, service="b")
    assert by_ref == Validate(cost=0, account_ref="acct_1", service="b", ttl_s=60.0)
    assert CHARGE_TTL_S == 60.0


def test_a_request_about_allowances_names_its_account_too_and_a_malformed_token_is_not_sent():
    assert ask_allowances(token(1), "list") == AskAllowances(action="list", token=token(1))
    asked = ask_allowances(AccountRef("acct_1"), "revoke", id="alw_1")
    assert asked == AskAllowances(action="revoke", account_ref="acct_1", id="alw_1")
    with pytest.raises(PaymentRequired):
        ask_allowances("nonsense", "list")


def test_a_reply_is_a_reservation_also_when_old_owners_leave_fields_out():
    said = Validated(ok=True, credits_remaining=7, expires_at="1970-01-01T00:01:00.000Z", state="voided", replayed=True)
    assert reservation("c1", 2, said) == ("c1", 2, 7, 60.0, "voided", True)
    assert reservation("c1", 2, Validated(ok=True)) == ("c1", 2, 0, 0.0, "open", False)


def test_a_reply_is_a_settlement():
    said = Committed(
        ok=True, state="reversed", credits_charged=0, balance_after=10, no_charge_reason="5xx", replayed=True
    )
    assert settlement("c1", said) == ("c1", 0, 10, "5xx", "reversed", True, ())


def test_an_account_has_a_balance_a_time_of_issue_and_a_reference():
    said = Validated(ok=True, credits_remaining=3, issued_at="1970-01-01T00:00:02.000Z", account_ref="acct_1")
    assert account(said) == (3, 2.0, AccountRef("acct_1"), None, None)
    said = Validated(ok=True, payer="p", allowance="alw_1")
    assert account(said) == (0, 0.0, AccountRef(""), "p", "alw_1")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("insufficient_credits", "insufficient_credits"),
        ("expired", "expired"),
        ("invalid_token", "invalid_token"),
        ("something_new", "invalid_token"),
    ],
)
def test_a_refusal_is_one_of_ours(reason, code):
    assert denial(OwnerRefusal(reason, 1), 5).code == code


def test_a_refusal_for_want_of_credits_says_what_is_needed_and_left():
    assert denial(OwnerRefusal("insufficient_credits", 1), 5).extra == {"required": 5, "credits_remaining": 1}
    assert denial(OwnerRefusal("insufficient_credits"), 5).extra == {"required": 5, "credits_remaining": 0}


def test_a_refusal_for_a_cap_names_it_and_says_how_it_would_be_crossed():
    found = denial(OwnerRefusal("insufficient_credits", 1, "tools", "not this tool"), 5)
    assert found.extra == {"required": 5, "credits_remaining": 1, "cap": "tools"}
    assert found.detail == "not this tool"
    assert denial(OwnerRefusal("insufficient_credits", 1), 5).detail == "This call costs 5 credits, and 1 are left."


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("not_found", "not_found"),
        ("allowance_conflict", "allowance_conflict"),
        ("expired", "expired"),
        ("invalid_token", "invalid_token"),
        ("something_new", "invalid_token"),
    ],
)
def test_a_refusal_about_allowances_is_one_of_ours(reason, code):
    assert allowance_refusal(OwnerRefusal(reason, detail="why")).code == code
    assert allowance_refusal(OwnerRefusal(reason, detail="why")).detail == "why"
    assert allowance_refusal(OwnerRefusal(reason)).detail == "The token is malformed or unknown."


def test_a_time_that_cannot_be_read_is_zero():
    assert (seconds("1970-01-01T00:00:01.500Z"), seconds("soon"), seconds(None)) == (1.5, 0.0, 0.0)
