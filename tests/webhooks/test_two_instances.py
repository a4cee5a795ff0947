"""Two instances on one database: what is due is claimed by one of them, and their changes do not undo each other."""

from itertools import chain

import anyio
import anyio.to_thread
import msgspec
import pytest

from tests.money.ledger.ledgers import opened_file
from tests.postgres import terms_of
from tests.requirements import proves
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.errors import SubscriptionConflict
from toolserver.sql.connection import hold_together
from toolserver.sql.postgres import PostgresConnection
from toolserver.webhooks.fire_operations import (
    AcceptFire,
    AddFire,
    ClaimFires,
    ClaimSubscriptions,
    FinishFire,
    RecordEvaluation,
)
from toolserver.webhooks.records import NEW, Attempt, EventTerms
from toolserver.webhooks.store import ROOM, WebhookStore, WebhookTables
from toolserver.webhooks.subscription_operations import AddSubscription, SubscribeEvent

pytestmark = pytest.mark.live
SHOPS = 30
LEASE = 60_000


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


@pytest.fixture
async def three(stores, tmp_path):
    async with opened_file("postgres", tmp_path) as third:
        yield (*stores, WebhookStore(third))


async def add_due(store, number=SHOPS):
    for each in range(number):
        await store.apply(AddSubscription(subscription(each, owner=f"{each:064x}", due_at=NOW)))


async def test_three_instances_share_what_is_due_and_each_delivery_is_claimed_once(three):
    """Each takes at most ten at a time and waits for the others, so that none can take all while they start."""
    await add_due(three[0], 90)
    due, claimed = [[] for _ in three], [[] for _ in three]

    async def claim(number):
        due[number] += [one.id for one in await three[number].apply(ClaimSubscriptions(NOW, 10))]
        claimed[number] += [
            one.fire.subscription for one in await three[number].apply(ClaimFires(NOW, {NEW: 10}, LEASE))
        ]

    for _ in range(6):
        async with anyio.create_task_group() as tasks:
            for number in range(len(three)):
                tasks.start_soon(claim, number)
    while batch := await three[0].apply(ClaimFires(NOW, {NEW: 10}, LEASE)):
        claimed[0] += [one.fire.subscription for one in batch]
    for taken in (due, claimed):
        assert sorted(chain(*taken)) == sorted(subscription(each).id for each in range(90))
    assert [len(each) for each in due] == [30, 30, 30]
    assert min(len(each) for each in claimed) >= 10


async def test_an_instance_that_is_still_claiming_holds_up_no_other_claim(three, tmp_path):
    await add_due(three[0], 6)
    slow = PostgresConnection(terms_of(tmp_path))  # its loop runs in a thread, as a writer's does
    await anyio.to_thread.run_sync(slow.begin)
    await anyio.to_thread.run_sync(hold_together, slow, f"room {ROOM}")
    taken = await anyio.to_thread.run_sync(lambda: WebhookTables(slow).claim_due(NOW, 4, failing=False))
    others = await three[1].apply(ClaimSubscriptions(NOW, 10))
    fires = await three[2].apply(ClaimFires(NOW, {NEW: 10}, LEASE))
    assert {one.id for one in taken} | {one.id for one in others} == {subscription(each).id for each in range(6)}
    assert sorted(one.fire.subscription for one in fires) == sorted(one.id for one in others)
    await anyio.to_thread.run_sync(slow.close)  # it dies before its commit
    for _ in range(500):  # the server gives its rows back a moment after the connection is closed
        if again := await three[2].apply(ClaimSubscriptions(NOW, 10)):
            break
        await anyio.sleep(0.02)
    assert {one.id for one in again} == {one.id for one in taken}


async def test_the_deliveries_of_an_instance_that_died_come_back_after_its_lease(three):
    await add_due(three[0], 5)
    await three[0].apply(ClaimSubscriptions(NOW, 10))
    dead = await three[0].apply(ClaimFires(NOW, {NEW: 10}, LEASE))
    assert await three[1].apply(ClaimFires(NOW + LEASE - 1, {NEW: 10}, LEASE)) == []
    shared = [await store.apply(ClaimFires(NOW + LEASE, {NEW: 3}, LEASE)) for store in three[1:]]
    assert [len(each) for each in shared] == [3, 2]
    assert {one.fire.id for each in shared for one in each} == {one.fire.id for one in dead}
    assert {one.fire.claims for each in shared for one in each} == {2}


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
