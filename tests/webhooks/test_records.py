import pytest

from tests.webhooks.shop import fire, subscription
from toolserver.webhooks.records import FAST, NEW, SLOW, Attempt, SubscriptionRequest


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
    row = subscription(params=b'{"history":"30d"}', condition=b'{"path":"a","above":1.0}')
    assert (row.given_params, row.given_condition) == ({"history": "30d"}, {"path": "a", "above": 1.0})
    assert subscription().given_condition is None


def test_custom_headers_are_not_shown_in_logs():
    assert "hidden" not in repr(SubscriptionRequest("macro", "https://a.example", headers={"X": "hidden"}))


def test_refusals_of_the_receiver_are_worth_fewer_attempts():
    assert Attempt(410, "http_410", 1).tries_allowed == 1
    assert Attempt(None, "target_refused", 1).tries_allowed == 1
    assert Attempt(404, "http_404", 1).tries_allowed == 2
    for status, error in ((429, "http_429"), (408, "http_408"), (500, "http_500"), (302, "redirect"), (None, "dns")):
        assert Attempt(status, error, 1).tries_allowed == 4


def test_an_attempt_without_an_error_is_a_delivery():
    assert Attempt(204, None, 1).delivered
    assert not Attempt(500, "http_500", 1).delivered
    assert Attempt(410, "http_410", 1).gone


@pytest.mark.parametrize(
    ("error", "read"),
    [
        *(("http_500", True), ("redirect", True), ("timeout", True), ("closed", True), ("tls", True)),
        *(("dns", False), ("connect", False), ("target_refused", False), ("internal_error", False)),
    ],
)
def test_a_body_counts_as_read_unless_it_cannot_have_been_sent(error, read):
    assert Attempt(None, error, 1).maybe_read is read
    assert Attempt(None, error, 1, challenge=True).maybe_read is False
