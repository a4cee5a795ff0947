"""Test the content of a rejected call, and how its class declares its error code."""

import pytest

from toolserver import errors
from toolserver.errors import CallRejected, InsufficientCredits, PaymentRequired


def test_a_rejection_carries_a_text_headers_and_the_members_of_its_body():
    rejected = InsufficientCredits("Too few.", headers={"X-A": "1"}, required=2)

    assert (str(rejected), rejected.detail, rejected.headers, rejected.extra) == (
        "Too few.",
        "Too few.",
        {"X-A": "1"},
        {"required": 2},
    )
    assert InsufficientCredits("x").headers is not InsufficientCredits("x").headers


def test_the_codes_of_payment_share_their_status_and_can_be_caught_together():
    codes = {kind.code: kind for kind in PaymentRequired.__subclasses__()}

    assert {kind.status for kind in codes.values()} == {402}
    assert codes["expired"] is errors.RevokedToken
    with pytest.raises(PaymentRequired):
        raise errors.MissingToken("none")


def test_a_meaning_is_the_docstring_on_one_line():
    for kind in CallRejected.declared.values():
        assert kind.meaning == " ".join((kind.__doc__ or "").split())
        assert kind.meaning.endswith(".")
        assert kind.advice.endswith(".")
