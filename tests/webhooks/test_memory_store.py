import pytest

from tests.webhooks.shop import fire, subscription
from toolserver.webhooks.memory_store import MemoryTables


def test_the_model_is_as_strict_as_the_database():
    tables = MemoryTables()
    tables.add(subscription())
    with pytest.raises(AssertionError):
        tables.add(subscription())
    with pytest.raises(AssertionError):
        tables.save(subscription(2))
    tables.add_fire(fire(state="charged"))
    with pytest.raises(AssertionError):
        tables.save_fire(fire())
    with pytest.raises(AssertionError):
        tables.add_fire(fire())


def test_a_removed_subscription_takes_its_fires_with_it():
    tables = MemoryTables()
    tables.add(subscription())
    tables.add_fire(fire())
    tables.remove(subscription().id)
    assert (tables.find(subscription().id), tables.find_fire(fire().id)) == (None, None)
