import base64
import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import proves
from toolserver.webhooks.signing import (
    new_secret,
    sign_service,
    sign_standard,
    signature_headers,
    verify_service,
)

SECRET = "whsec_00112233445566778899aabbccddeeff"


def test_a_secret_has_the_shape_of_the_specification_and_decodes_to_the_24_bytes_that_the_standard_wants():
    secret = new_secret()
    assert len(secret) == 38
    assert secret[6:] == secret[6:].lower()
    assert len(base64.b64decode(secret[6:], validate=True)) == 24
    assert new_secret() != secret


@proves("webhook.signature")
def test_the_service_signature_is_plain_hmac_with_the_whole_secret_over_timestamp_dot_body():
    expected = hmac.new(SECRET.encode(), b'1700000000.{"a":1}', hashlib.sha256).hexdigest()
    assert sign_service(SECRET, 1700000000, b'{"a":1}') == f"sha256={expected}"


def test_the_standard_signature_uses_the_decoded_secret_over_id_timestamp_and_body():
    key = base64.b64decode(SECRET[6:])
    expected = base64.b64encode(hmac.new(key, b"msg_1.1700000000.{}", hashlib.sha256).digest()).decode()
    assert sign_standard(SECRET, "msg_1", 1700000000, b"{}") == f"v1,{expected}"


def test_both_rules_stand_side_by_side_with_one_timestamp():
    headers = signature_headers(SECRET, (), message_id="msg_1", timestamp=1700000000, body=b"{}")
    assert headers["X-Service-Timestamp"] == headers["webhook-timestamp"] == "1700000000"
    assert headers["X-Service-Signature"] == sign_service(SECRET, 1700000000, b"{}")
    assert headers["webhook-signature"] == sign_standard(SECRET, "msg_1", 1700000000, b"{}")
    assert "X-Service-Signature-Previous" not in headers


def test_while_a_secret_is_rotated_either_secret_verifies():
    new = new_secret()
    headers = signature_headers(new, [SECRET], message_id="msg_1", timestamp=1700000000, body=b"{}")
    assert headers["X-Service-Signature"] == sign_service(new, 1700000000, b"{}")
    assert headers["X-Service-Signature-Previous"] == sign_service(SECRET, 1700000000, b"{}")
    assert headers["webhook-signature"].split(" ") == [
        sign_standard(new, "msg_1", 1700000000, b"{}"),
        sign_standard(SECRET, "msg_1", 1700000000, b"{}"),
    ]


@given(st.binary(max_size=200), st.integers(0, 2**33))
def test_a_receiver_accepts_what_was_signed_and_nothing_else(body, timestamp):
    signature = sign_service(SECRET, timestamp, body)
    assert verify_service(SECRET, signature, str(timestamp), body, now=timestamp + 299)
    assert not verify_service(SECRET, signature, str(timestamp), body + b" ", now=timestamp)
    assert not verify_service(SECRET, signature, str(timestamp + 1), body, now=timestamp)
    assert not verify_service(SECRET, signature, str(timestamp), body, now=timestamp + 301)
    assert not verify_service(new_secret(), signature, str(timestamp), body, now=timestamp)


def test_a_receiver_refuses_timestamps_and_signatures_that_are_none():
    for timestamp in ("", "-1", "1e9", "٣", "1700000000.5"):
        assert not verify_service(SECRET, "sha256=", timestamp, b"", now=1700000000)
    assert not verify_service(SECRET, "sha256=é", "1700000000", b"", now=1700000000)
