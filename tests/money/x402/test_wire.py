"""The wire format: the specification's own examples, the official models, and whatever else anybody sends."""

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from x402.http.utils import (
    decode_payment_required_header,
    decode_payment_response_header,
    encode_payment_signature_header,
)
from x402.schemas import PaymentPayload

from tests.money.x402.parts import NOW, PAY_TO, PAYER, REPORT, TERMS, payload, signed
from toolserver.money.purchases.credit_price import ATOMIC_PER_CREDIT
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import Offer, misfit
from toolserver.money.x402.wire import (
    META_PAYMENT,
    META_RESPONSE,
    REQUIRED,
    RESPONSE,
    SIGNATURE,
    header,
    offer_version_1,
    unheader,
)

SPECIFIED = """
eyJ4NDAyVmVyc2lvbiI6MiwicmVzb3VyY2UiOnsidXJsIjoiaHR0cHM6Ly9hcGkuZXhhbXBsZS5jb20vcHJlbWl1bS1kYXRhIiwiZGVzY3JpcHRpb24i
OiJBY2Nlc3MgdG8gcHJlbWl1bSBtYXJrZXQgZGF0YSIsIm1pbWVUeXBlIjoiYXBwbGljYXRpb24vanNvbiJ9LCJhY2NlcHRlZCI6eyJzY2hlbWUiOiJl
eGFjdCIsIm5ldHdvcmsiOiJlaXAxNTU6ODQ1MzIiLCJhbW91bnQiOiIxMDAwMCIsImFzc2V0IjoiMHgwMzZDYkQ1Mzg0MmM1NDI2NjM0ZTc5Mjk1NDFl
QzIzMThmM2RDRjdlIiwicGF5VG8iOiIweDIwOTY5M0JjNmFmYzBDNTMyOGJBMzZGYUYwM0M1MTRFRjMxMjI4N0MiLCJtYXhUaW1lb3V0U2Vjb25kcyI6
NjAsImV4dHJhIjp7Im5hbWUiOiJVU0RDIiwidmVyc2lvbiI6IjIifX0sInBheWxvYWQiOnsic2lnbmF0dXJlIjoiMHgyZDZhNzU4OGQ2YWNjYTUwNWNi
ZjBkOWE0YTIyN2UwYzUyYzZjMzQwMDhjOGU4OTg2YTEyODMyNTk3NjQxNzM2MDhhMmNlNjQ5NjY0MmUzNzdkNmRhOGRiYmY1ODM2ZTliZDE1MDkyZjll
Y2FiMDVkZWQzZDYyOTNhZjE0OGI1NzFjIiwiYXV0aG9yaXphdGlvbiI6eyJmcm9tIjoiMHg4NTdiMDY1MTlFOTFlM0E1NDUzODc5MWJEYmIwRTIyMzcz
ZTM2YjY2IiwidG8iOiIweDIwOTY5M0JjNmFmYzBDNTMyOGJBMzZGYUYwM0M1MTRFRjMxMjI4N0MiLCJ2YWx1ZSI6IjEwMDAwIiwidmFsaWRBZnRlciI6
IjE3NDA2NzIwODkiLCJ2YWxpZEJlZm9yZSI6IjE3NDA2NzIxNTQiLCJub25jZSI6IjB4ZjM3NDY2MTNjMmQ5MjBiNWZkYWJjMDg1NmYyYWViMmQ0Zjg4
ZWU2MDM3YjhjYzVkMDRhNzFhNDQ2MmYxMzQ4MCJ9fX0=
""".replace("\n", "")
OFFER = Offer(TERMS.requirement(REPORT), TERMS.resource("/api/pro/report", "A report"), {})


def test_the_example_of_the_specification_is_read():
    payment = wire.read_payment(SPECIFIED)

    assert payment.shown_payer == "0x857b06519E91e3A54538791bDbb0E22373e36b66"
    assert (payment.amount, payment.valid_after, payment.valid_before) == (10_000, 1_740_672_089, 1_740_672_154)
    assert payment.nonce.hex().startswith("f3746613")
    assert payment.accepted.network == "eip155:84532"
    assert misfit(payment, OFFER.requirement, NOW) == "invalid_network"


def test_a_credit_costs_two_cents():
    assert ATOMIC_PER_CREDIT == 20_000


def test_official_code_reads_our_offer():
    found = decode_payment_required_header(wire.header(OFFER.required("missing_token")))

    assert (found.x402_version, found.error) == (2, "missing_token")
    assert found.resource.url == "https://data.example/api/pro/report"
    assert found.accepts[0].amount == "40000"
    assert found.accepts[0].extra == {"name": "USD Coin", "version": "2"}
    assert found.accepts[0].pay_to.lower() == f"0x{PAY_TO.hex()}"


@pytest.mark.parametrize(("tx", "reason"), [(bytes([7]) * 32, None), (None, "insufficient_funds")])
def test_official_code_reads_our_settlement(tx, reason):
    found = decode_payment_response_header(wire.header(wire.settlement("0xab", NETWORK, tx=tx, reason=reason)))

    assert (found.success, found.error_reason) == (reason is None, reason)
    assert found.transaction == (f"0x{tx.hex()}" if tx else "")
    assert (found.network, found.payer) == (NETWORK, "0xab")


def test_we_read_what_official_code_writes_and_it_reads_what_we_pass_on():
    text = encode_payment_signature_header(PaymentPayload.model_validate(payload()))
    payment = wire.read_payment(text)
    passed_on = PaymentPayload.model_validate(wire.write_payment(payment, OFFER.requirement, OFFER.resource, {}))

    assert (payment.payer, payment.payee, payment.amount) == (PAYER, PAY_TO, REPORT)
    assert misfit(payment, OFFER.requirement, NOW) is None
    assert passed_on.payload["authorization"]["value"] == str(REPORT)


def test_one_payment_has_one_name_however_it_is_written():
    given = payload()
    upper = json.loads(json.dumps(given))
    authorization = upper["payload"]["authorization"]
    authorization["from"] = "0x" + authorization["from"][2:].lower()
    authorization["nonce"] = "0x" + authorization["nonce"][2:].upper()
    authorization["value"] = "00" + authorization["value"]
    upper["resource"] = {"url": "https://else.example"}

    assert wire.read_payment(wire.header(given)).id == wire.read_payment(json.dumps(upper)).id
    assert wire.read_payment(wire.header(given)).id != wire.read_payment(signed()).id


@pytest.mark.parametrize(
    "changed",
    [
        {"x402Version": 1},
        {"x402Version": "2"},
        {"value": 40000},
        {"value": "-1"},
        {"value": "4e4"},
        {"value": str(2**256)},
        {"value": "9" * 79},
        {"from": "0x00"},
        {"to": "alice"},
        {"nonce": "0x" + "0" * 63},
        {"signature": "0x" + "0" * 64},
        {"signature": "0x" + "0" * 131},
        {"validBefore": ""},
        {"scheme": None},
    ],
)
def test_what_is_no_payment(changed):
    with pytest.raises(wire.Malformed):
        wire.read_payment(signed(**changed))


@pytest.mark.parametrize(
    "text",
    ["", "{", "{}", "[]", "bnVsbA==", "é", "\0", "=" * 8, "a" * 9000, base64.b64encode(b"[" * 6000).decode()],
)
def test_what_is_not_even_an_object(text):
    with pytest.raises(wire.Malformed):
        wire.read_payment(text)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"scheme": "upto"}, "invalid_scheme"),
        ({"network": "eip155:1"}, "invalid_network"),
        ({"asset": "0x" + "11" * 20}, "invalid_payment_requirements"),
        ({"amount": "39999"}, "invalid_exact_evm_payload_authorization_value_mismatch"),
        ({"value": "39999"}, "invalid_exact_evm_payload_authorization_value_mismatch"),
        ({"value": "40001"}, "invalid_exact_evm_payload_authorization_value_mismatch"),
        ({"to": "0x" + "11" * 20}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"payTo": "0x" + "11" * 20}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"validAfter": str(NOW + 1)}, "invalid_exact_evm_payload_authorization_valid_after"),
        ({"validBefore": str(NOW + 9)}, "invalid_exact_evm_payload_authorization_valid_before"),
    ],
)
def test_a_payment_for_something_else(changed, reason):
    assert misfit(wire.read_payment(signed(**changed)), OFFER.requirement, NOW) == reason


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: base64.b64encode(b).decode()))
def test_anything_is_read_or_malformed(text):
    with contextlib.suppress(wire.Malformed):
        wire.read_payment(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["payload", "accepted", "x402Version", "signature", "from", "value", "nonce", "payTo"]), JSON)
def test_a_payment_with_one_wrong_member_is_read_or_malformed(name, value):
    whole = payload()
    for part in (whole, whole["payload"], whole["payload"]["authorization"], whole["accepted"]):
        if name in part:
            part[name] = value
    with contextlib.suppress(wire.Malformed):
        wire.read_payment(wire.header(whole))


@pytest.mark.parametrize("value", [{}, {"x402Version": 2, "accepts": [{"amount": "1"}]}, {"error": "naïve ✓"}])
def test_an_object_travels_as_base64_of_json_and_back(value):
    assert json.loads(base64.b64decode(header(value), validate=True)) == value
    assert header(value).isascii()
    assert unheader(header(value)) == value


def test_the_names_are_those_of_version_2():
    assert (REQUIRED, SIGNATURE, RESPONSE) == ("PAYMENT-REQUIRED", "PAYMENT-SIGNATURE", "PAYMENT-RESPONSE")
    assert (META_PAYMENT, META_RESPONSE) == ("x402/payment", "x402/payment-response")


def test_an_offer_of_version_1_says_the_same_as_the_one_of_version_2():
    offered = {
        **{"scheme": "exact", "network": "eip155:8453", "amount": "40000", "asset": "0xa", "payTo": "0xb"},
        **{"maxTimeoutSeconds": 120, "extra": {"name": "USD Coin"}},
    }
    resource = {"url": "https://data.example/x", "description": "X", "mimeType": "application/json"}
    assert offer_version_1({"x402Version": 2, "resource": resource, "accepts": [offered]}) == {
        "x402Version": 1,
        "accepts": [
            {
                **{"scheme": "exact", "network": "base", "maxAmountRequired": "40000", "asset": "0xa", "payTo": "0xb"},
                **{"maxTimeoutSeconds": 120, "extra": {"name": "USD Coin"}, "resource": "https://data.example/x"},
                **{"description": "X", "mimeType": "application/json"},
            }
        ],
    }
