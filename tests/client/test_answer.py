"""What an answer says besides its payload."""

import pytest

from toolserver.client.answer import ToolAnswer, read_json
from toolserver.core.http_client import HttpAnswer, Unreachable


def test_the_headers_of_a_paid_answer_are_read():
    headers = {
        "x-service-receipt": "a.b.c",
        "x-service-receipt-id": "rcpt_1",
        "x-credits-remaining": "7",
        "x-request-id": "req_1",
    }
    answer = ToolAnswer({"a": 1}, b'{"a":1}', headers)
    assert (answer.receipt, answer.receipt_id, answer.credits_remaining) == ("a.b.c", "rcpt_1", 7)
    assert answer.request_id == "req_1"
    assert "a.b.c" not in repr(answer)


def test_a_free_answer_has_neither_receipt_nor_credits():
    answer = ToolAnswer({}, b"{}", {})
    assert (answer.receipt, answer.receipt_id, answer.credits_remaining, answer.request_id) == (None, None, None, None)


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b""])
def test_what_is_no_json_object_does_not_come_from_the_service(body):
    with pytest.raises(Unreachable, match="502"):
        read_json(HttpAnswer(502, {}, body))
