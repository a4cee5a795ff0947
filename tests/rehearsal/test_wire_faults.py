"""Each fault of the wire for a free call, a paid one and a webhook: the truth is told, and nothing hangs or is left."""

from typing import Any

import pytest

from tests.rehearsal.private_net import run_in_net
from tests.rehearsal.wire_faults import CASES

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

PRICE, FIRE_PRICE = 2, 1  # credits of the report, and of a delivery
MOST_LEFT = 2  # connections that are kept for later: to the sources, and to the receiver


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_in_net("tests.rehearsal.wire_faults", tmp_path_factory.mktemp("wire"), within_s=280)


@pytest.fixture(params=CASES)
def case(request, seen):
    return CASES[request.param], seen[request.param]


def assert_new(answers):
    """Both answers are what the sources say now, and the paid one was charged once."""
    free, paid, value = answers["free"], answers["paid"], answers["value"]
    assert (free["data"]["value"], free["stale"], free.get("warning")) == (value, False, None)
    assert (paid["one"], paid["two"], paid["stale"]) == (value, value, False)
    assert_receipt(answers, PRICE)


def assert_held(answers, good):
    """Both answers are the last good ones and say so, and the paid one was not charged."""
    free, paid, value = answers["free"], answers["paid"], good["value"]
    assert (free["data"]["value"], free["stale"], free["updated_at"]) == (value, True, good["free"]["updated_at"])
    assert {warning["code"] for warning in free["warning"]} == {"stale_data"}
    assert (paid["one"], paid["two"], paid["stale"]) == (value, value, True)
    assert_receipt(answers, 0)


def assert_receipt(answers, charged):
    """The receipt is valid, and says what was charged."""
    assert (answers["charged"], answers["held"]) == (charged, 0)
    receipt = answers["receipt"]
    assert (receipt["valid"], receipt["core"]["credits_charged"]) == (True, charged)


def test_a_free_and_a_paid_call_tell_the_truth_under_the_fault(case):
    expected, came = case
    assert came["during"]["statuses"] == [200, 200]
    if expected.calls == "new":
        assert_new(came["during"])
    else:
        assert_held(came["during"], came["before"])


def test_the_next_calls_are_as_before_the_fault(case):
    _, came = case
    assert_new(came["before"])
    assert_new(came["after"])


def test_a_delivery_is_charged_when_it_arrived_and_once(case):
    expected, came = case
    struck, healed = came["delivery"]["struck"], came["delivery"]["healed"]
    if expected.delivery is None:
        assert struck == healed == ["charged", None, 1, FIRE_PRICE]
    else:
        assert struck == ["open", expected.delivery, 1, 0]
        assert healed == ["charged", None, 2, FIRE_PRICE]
    assert came["delivery"]["held"] == 0


def test_no_task_and_no_connection_is_left(case):
    _, came = case
    assert came["left"]["tasks"] == 0
    assert came["left"]["connections"] <= MOST_LEFT


def test_a_service_that_ended_leaves_no_connection(seen):
    assert [seen[f"left {number}"]["connections"] for number in range(3)] == [0, 0, 0]
