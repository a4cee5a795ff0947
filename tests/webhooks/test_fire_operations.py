import pytest

from tests.webhooks.shop import NOW, empty_tables, fire, subscription
from toolserver.errors import NotFound, SubscriptionConflict
from toolserver.webhooks.fire_operations import FinishFire, FireNow, ReplayFire, plan_fire
from toolserver.webhooks.records import SLOT_MS, Attempt


@pytest.fixture
def tables():
    with empty_tables() as rows:
        rows.add(subscription())
        yield rows


def test_a_planned_fire_is_due_at_once_until_the_end_of_its_slot():
    planned = plan_fire(subscription(), NOW + 10)
    assert (planned.due_at, planned.expires_at, planned.price) == (NOW + 10, NOW + SLOT_MS, 1)
    assert [plan_fire(subscription(), NOW, kind=kind).price for kind in ("fired", "cleared", "no_data", "test")] == [
        1,
        1,
        0,
        0,
    ]


def test_an_operator_lets_an_active_subscription_fire_now(tables):
    assert FireNow(subscription().id, NOW + 7).on(tables).due_at == NOW + 7
    tables.save(subscription(state="paused", pause_reason="operator"))
    with pytest.raises(SubscriptionConflict):
        FireNow(subscription().id, NOW).on(tables)
    with pytest.raises(NotFound):
        FireNow("wh_nothing", NOW).on(tables)


def test_a_replay_carries_the_same_and_is_free(tables):
    tables.add_fire(fire(state="charged", payload="digest", kind="fired", condition=b"{}", state_after=b"x"))
    again = ReplayFire(fire().id, NOW + 5).on(tables)
    assert again.id != fire().id
    assert (again.payload, again.kind, again.condition, again.price) == ("digest", "fired", b"{}", 0)
    assert again.state_after is None
    with pytest.raises(NotFound):
        ReplayFire("call_nothing", NOW).on(tables)


def test_a_condition_whose_delivery_failed_is_where_it_was(tables):
    tables.save(subscription(condition_state=b"after"))
    tables.add_fire(fire(kind="fired", state_before=b"before", state_after=b"after"))
    FinishFire(fire().id, "released", "delivery_failed", NOW, Attempt(500, "http_500", 1)).on(tables)
    assert tables.find(subscription().id).condition_state == b"before"


def test_a_condition_whose_delivery_arrived_moves_on(tables):
    tables.save(subscription(condition_state=b"after"))
    tables.add_fire(fire(kind="fired", state_before=b"before", state_after=b"after"))
    FinishFire(fire().id, "charged", None, NOW).on(tables)
    assert tables.find(subscription().id).condition_state == b"after"


def test_a_test_changes_nothing_about_its_subscription(tables):
    tables.add_fire(fire(kind="test"))
    FinishFire(fire().id, "released", "delivery_failed", NOW, Attempt(410, "http_410", 1)).on(tables)
    assert tables.find(subscription().id) == subscription()
