import json

from tests.webhooks.shop import NOW, fire, subscription
from toolserver.webhooks.message import WebhookMessage, compose_body
from toolserver.webhooks.secret_box import SubscriptionSecrets

HELD = SubscriptionSecrets("whsec_00112233445566778899aabbccddeeff", headers={"X-Mine": "1", "webhook-id": "false"})


def test_the_body_is_that_of_the_specification_with_the_payload_as_it_is():
    body = compose_body(fire(sent_at=NOW + 7), subscription(), b'{"a": 1.50}')
    assert body == (
        b'{"subscription_id":"wh_0000000000000001","endpoint":"world-deltas",'
        b'"delivered_at":"2027-01-15T08:00:00.007Z","data":{"a": 1.50}}'
    )


def test_conditions_and_tests_add_one_member_each():
    told = fire(kind="fired", condition=b'{"name":"n"}')
    assert json.loads(compose_body(told, subscription(), b"{}"))["condition"] == {"name": "n"}
    assert json.loads(compose_body(fire(kind="test"), subscription(), b"{}"))["test"] is True


def test_our_headers_win_over_custom_ones_and_a_free_delivery_names_no_receipt():
    headers = WebhookMessage(fire(), subscription(), b"{}").headers(HELD, NOW)
    assert (headers["X-Mine"], headers["webhook-id"]) == ("1", fire().message_id)
    assert headers["X-Service-Subscription"] == subscription().id
    assert headers["X-Service-Receipt-Id"] == fire().receipt_id
    assert "X-Service-Receipt-Id" not in WebhookMessage(fire(price=0), subscription(), b"{}").headers(HELD, NOW)
