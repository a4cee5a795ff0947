"""The small parts of an exchange."""

import pytest

from rest_bridge.headers import match_etag, paid_headers, prefers_reference, request_id, text, without_entity
from rest_bridge.routes import Endpoint
from tests.catalog.tiny import TINY
from toolserver.calls.paid_call import PaidCallResult
from toolserver.calls.pipeline import Outcome
from toolserver.calls.response import RenderedResponse
from toolserver.money.x402.wire import unheader

ANSWER = RenderedResponse(b"x" * 2000, 0, 60, 0)


def sold(rendered: RenderedResponse, remaining: int | None = None, **receipt: str) -> Outcome:
    """The outcome of a sale of two credits."""
    return Outcome.of_sale(PaidCallResult(rendered, 2, remaining, **receipt))


def test_the_key_of_the_default_answer_is_there_only_where_no_argument_is_needed():
    keys = {operation.name: Endpoint(operation).default_key is not None for operation in TINY}
    assert keys["digest"]
    assert not keys["sights"]


@pytest.mark.parametrize("given", [b"trace-1234567", b"a" * 64])
def test_a_sane_request_id_of_the_caller_is_kept(given):
    assert request_id(given) == given.decode()


@pytest.mark.parametrize("given", [b"", b"<script>", b"a b", b"x" * 1000, b"\xff\xfe"])
def test_any_other_is_replaced(given):
    assert request_id(given).startswith("req_")


def test_header_values_are_text_in_latin_1():
    assert text(b"caf\xe9") == "café"
    assert text(None) is None


def test_a_client_that_does_not_say_what_it_has_is_not_asked_about():
    assert match_etag(None, b"gzip") is None


@pytest.mark.parametrize(("accept", "tag"), [(None, ""), (b"identity", ""), (b"gzip", "-gzip"), (b"br, gzip", "-br")])
def test_a_client_has_an_answer_only_in_the_coding_that_would_be_sent(accept, tag):
    tags = ["", "-gzip", "-br", "-zstd"]
    found = [known for known in tags if match_etag(f'"{ANSWER.etag}{known}"'.encode(), accept)(ANSWER)]
    assert found == [tag]


def test_a_304_says_nothing_of_a_body():
    given = [(b"content-type", b"a"), (b"etag", b"b"), (b"content-length", b"1"), (b"content-encoding", b"gzip")]
    assert without_entity(given) == [(b"etag", b"b")]


def test_a_paid_answer_says_what_is_left_and_carries_its_receipt():
    outcome = sold(ANSWER, 7, receipt_id="rcpt_1", receipt="a.b.c")
    assert paid_headers(outcome) == [
        (b"x-credits-remaining", b"7"),
        (b"x-service-receipt-id", b"rcpt_1"),
        (b"x-service-receipt", b"a.b.c"),
    ]
    assert paid_headers(Outcome(ANSWER)) == []


def test_a_receipt_by_reference_is_named_and_the_preference_confirmed():
    assert paid_headers(sold(ANSWER, 7, receipt_id="rcpt_1")) == [
        (b"x-credits-remaining", b"7"),
        (b"x-service-receipt-id", b"rcpt_1"),
        (b"preference-applied", b"receipt=reference"),
    ]


@pytest.mark.parametrize(
    ("prefer", "asked"),
    [
        (None, False),
        (b"receipt=reference", True),
        (b'respond-async, Receipt = "reference"; foo=bar', True),
        (b"receipt=inline, receipt=reference", False),
        (b"receipts=reference", False),
        (b"receipt", False),
        (b"\xff", False),
    ],
)
def test_a_preference_is_read_as_rfc_7240_writes_it(prefer, asked):
    assert prefers_reference(prefer) is asked


def test_a_payment_that_came_with_the_call_is_told_in_the_version_in_which_it_was_sent():
    told = {"success": True, "network": "eip155:8453", "transaction": "0xab"}
    outcome = Outcome(ANSWER, settlement=told)
    for lines in ((), [(b"payment-signature", b"x")]):
        ((name, value),) = paid_headers(outcome, lines)
        assert (name, unheader(value.decode())) == (b"payment-response", told)
    (_, (name, value)) = paid_headers(outcome, [(b"accept", b"*/*"), (b"x-payment", b"x")])
    assert (name, unheader(value.decode())) == (b"x-payment-response", told | {"network": "base"})


def test_a_token_with_nothing_left_is_told_so():
    assert paid_headers(sold(ANSWER, 0)) == [(b"x-credits-remaining", b"0")]


def test_only_answers_that_are_kept_and_need_no_argument_are_found_without_reading_one():
    assert {operation.name for operation in TINY if Endpoint(operation).default_key is not None} == {
        *("digest", "premium_deep")
    }
    for operation in TINY:
        endpoint = Endpoint(operation)
        assert (endpoint.arguments is None) == (endpoint.default_key is None)


@pytest.mark.parametrize(
    ("given", "is_kept"), [(b"a" * 7, False), (b"a" * 8, True), (b"a" * 128, True), (b"a" * 129, False)]
)
def test_a_request_id_has_eight_to_a_hundred_and_twenty_eight_characters(given, is_kept):
    assert (request_id(given) == given.decode()) is is_kept
