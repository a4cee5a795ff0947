"""The described delivery is the one that is sent."""

import json
import re

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from rest_bridge.openapi.document import openapi
from rest_bridge.openapi.webhooks import describe_deliveries
from tests.catalog.tiny import FACTS, TINY
from tests.json_schemas import validate
from tests.webhooks.receivers import receiving
from tests.webhooks.served_hooks import hooked
from toolserver.registry.registry import Registry

PROJECT = Registry.load("tools")
DELIVERY = describe_deliveries(PROJECT)["webhooks"]["delivery"]["post"]
SCHEMA = DELIVERY["requestBody"]["content"]["application/json"]["schema"]
WHEN = {"path": "context.markets.btc.price_usd", "above": 1}


def test_the_document_with_deliveries_is_valid_and_there_are_none_where_nobody_can_subscribe():
    document = openapi(PROJECT, FACTS)
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    assert document["webhooks"] == {"delivery": {"post": DELIVERY}}
    assert describe_deliveries(TINY) == {}


@pytest.mark.parametrize("asked", [{}, {"state": "fired"}, {"state": "no_data"}])
async def test_what_is_sent_is_what_is_described(asked):
    async with hooked() as service, receiving() as receiver:
        made = await service.subscribe(receiver.url(), when=WHEN)
        await service.call("POST", f"/api/pro/subscribe/{made['id']}/rotate-secret")
        await service.call("POST", f"/api/pro/subscribe/{made['id']}/test", **asked)
    (request,) = receiver.requests
    body = json.loads(request.body)
    validate(body, SCHEMA)
    assert body.keys() <= SCHEMA["properties"].keys()
    for parameter in DELIVERY["parameters"]:
        sent = request.headers.get(parameter["name"].lower())
        assert sent is not None or not parameter["required"]
        assert sent is None or re.search(parameter["schema"]["pattern"], sent)
    described = {parameter["name"].lower() for parameter in DELIVERY["parameters"]}
    assert {name for name in request.headers if name.startswith(("x-service-", "webhook-"))} <= described


def test_every_delivery_has_a_body_and_the_headers_that_prove_it():
    assert DELIVERY["requestBody"]["required"] is True
    assert SCHEMA["required"] == ["subscription_id", "endpoint", "delivered_at", "data"]
    assert {parameter["name"]: parameter["required"] for parameter in DELIVERY["parameters"]} == {
        "X-Service-Signature": True,
        "X-Service-Timestamp": True,
        "X-Service-Subscription": True,
        "webhook-id": True,
        "webhook-timestamp": True,
        "webhook-signature": True,
        "X-Service-Signature-Previous": False,
        "X-Service-Receipt-Id": False,
    }
    assert {(parameter["in"], parameter["schema"]["type"]) for parameter in DELIVERY["parameters"]} == {
        ("header", "string")
    }


def test_a_delivery_needs_no_sign_in_and_a_test_is_marked_as_one():
    assert (DELIVERY["security"], DELIVERY["responses"].keys()) == ([], {"2XX", "410", "default"})
    assert SCHEMA["properties"]["test"]["const"] is True
    assert SCHEMA["properties"]["condition"]["required"] == ["name", "state", "old", "new"]
    assert SCHEMA["properties"]["condition"]["properties"]["state"]["enum"] == ["fired", "cleared", "no_data"]
