from tests.webhooks.shop import fire, subscription
from toolserver.webhooks.records import FAST, NEW, SLOW, SubscriptionRequest


def test_an_endpoint_takes_the_lane_that_its_last_delivery_earned():
    assert subscription().lane == NEW
    assert subscription(delivered_count=1).lane == FAST
    assert subscription(delivered_count=1, slow=1).lane == SLOW
    assert subscription(delivered_count=1, consecutive_failures=1).lane == SLOW


def test_a_fire_is_known_to_receivers_and_to_receipts_by_one_number():
    number = f"{1:032x}"
    assert (fire().message_id, fire().receipt_id) == (f"msg_{number}", f"rcpt_{number}")


def test_a_fire_that_was_claimed_twice_was_interrupted():
    assert [fire(claims=claims).interrupted for claims in (0, 1, 2)] == [False, False, True]
    assert [fire(state=state).is_open for state in ("open", "accepted", "charged", "skipped")] == [1, 1, 0, 0]


def test_what_its_owner_gave_can_be_shown():
    given = subscription(params=b'{"history":"30d"}', condition=b'{"path":"a","above":1.0}')
    assert (given.given_params, given.given_condition) == ({"history": "30d"}, {"path": "a", "above": 1.0})
    assert subscription().given_condition is None


def test_custom_headers_are_not_shown_in_logs():
    assert "hidden" not in repr(SubscriptionRequest("macro", "https://a.example", headers={"X": "hidden"}))
