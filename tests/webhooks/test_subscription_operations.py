import pytest

from tests.webhooks.shop import NOW, empty_tables, subscription
from toolserver.errors import NotFound, SubscriptionConflict
from toolserver.webhooks.subscription_operations import AddSubscription, CancelSubscription, find_owned


def test_a_refused_operation_changes_nothing():
    with empty_tables() as tables:
        for number in range(5):
            AddSubscription(subscription(number)).on(tables)
        before = tables.list_all(10, None)
        with pytest.raises(SubscriptionConflict):
            AddSubscription(subscription(6)).on(tables)
        with pytest.raises(NotFound):
            CancelSubscription(subscription(1).id, "b" * 64, NOW).on(tables)
        assert tables.list_all(10, None) == before


def test_a_subscription_is_found_by_its_owner_and_by_the_operator():
    stored = subscription()
    assert find_owned({stored.id: stored}.get, stored.id, stored.owner) is stored
    assert find_owned({stored.id: stored}.get, stored.id, None) is stored
    for id, owner in ((stored.id, "b" * 64), ("wh_nothing", None), ("wh_nothing", stored.owner)):
        with pytest.raises(NotFound, match="no such subscription"):
            find_owned({stored.id: stored}.get, id, owner)
