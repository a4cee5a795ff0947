"""Objects as the values of headers."""

import base64
import json

import pytest

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
