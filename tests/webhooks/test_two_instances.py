"""Two instances on one database: what is due is claimed by one of them, and their changes do not undo each other."""

import anyio
import msgspec
import pytest

from tests.money.ledger.ledgers import opened_file
from tests.requirements import proves
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.errors import SubscriptionConflict
from toolserver.webhooks.fire_operations import (
    AcceptFire,
    AddFire,
    ClaimFires,
    ClaimSubscriptions,
    FinishFire,
    RecordEvaluation,
)
from toolserver.webhooks.records import Attempt, EventTerms
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import AddSubscription, SubscribeEvent

pytestmark = pytest.mark.live
SHOPS = 30


@pytest.fixture
async def stores(tmp_path):
    async with opened_file("postgres", tmp_path) as one, opened_file("postgres", tmp_path) as other:
        yield WebhookStore(one), WebhookStore(other)


async def together(stores, work):
    async with anyio.create_task_group() as tasks:
        for turn in range(8):
            tasks.start_soon(work, stores[turn % 2])


async def test_each_subscription_and_each_fire_is_claimed_by_one(stores):
    for number in range(SHOPS):
        await stores[0].apply(AddSubscription(subscription(number, owner=f"{number:064x}", due_at=NOW)))
    due, claimed = [], []

    async def claim_due(store):
        while batch := await store.apply(ClaimSubscriptions(NOW, 4)):
            due.extend(one.id for one in batch)

    async def claim_fires(store):
        while batch := await store.apply(ClaimFires(NOW, {0: 3, 1: 3}, 60_000)):
            claimed.extend(one.fire.id for one in batch)

    await together(stores, claim_due)
    assert len(due) == len(set(due)) == SHOPS
    await together(stores, claim_fires)
    assert len(claimed) == len(set(claimed)) == SHOPS


async def test_what_instances_count_adds_up_and_fires_are_numbered_in_a_line(stores):
    await stores[0].apply(AddSubscription(subscription()))

    async def deliver(store):
        for _ in range(3):
            number = next(numbers)
            await store.apply(AddFire(fire(number)))
            await store.apply(AcceptFire(fire(number).id, Attempt(200, None, 1), NOW))
            await store.apply(FinishFire(fire(number).id, "charged", None, NOW))

    numbers = iter(range(1, 100))
    await together(stores, deliver)
    stored = await stores[1].subscription(subscription().id)
    assert stored.delivered_count == 24
    log = await stores[0].fires(stored.id, 50)
    assert sorted(one.seq for one in log) == list(range(1, 25))


@proves("events.once", "events.renewed")
async def test_the_same_subscription_at_both_is_one_and_what_both_find_is_one_event(stores):
    terms = EventTerms("sub_1", "price.crossed", {"symbol": "BTC", "below": 90_000})
    wanted = subscription(event=msgspec.json.encode(terms), condition=b"{}", expires_at=NOW + 600_000)
    outcomes = []

    async def subscribe(store):
        try:
            outcomes.append(await store.apply(SubscribeEvent(wanted._replace(id=f"wh_{next(ids):016x}"), None, NOW)))
        except SubscriptionConflict:
            outcomes.append(None)

    async def find(store):
        number = next(ids)
        planned = fire(number, subscription=stored.id)
        found.append(await store.apply(RecordEvaluation(stored.id, None, b'{"level":"fired"}', planned)))

    ids, found = iter(range(1, 100)), []
    await together(stores, subscribe)
    [stored] = [outcome for outcome in outcomes if outcome is not None]
    assert [one.id for one in await stores[1].owned(wanted.owner)] == [stored.id]
    await together(stores, find)
    assert sorted(found) == [False] * 7 + [True]
    assert len(await stores[0].fires(stored.id, 10)) == 1
