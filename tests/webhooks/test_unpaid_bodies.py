"""The counts of bodies that are not paid for, over every engine."""

from dataclasses import dataclass

import pytest

from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from tests.requirements import proves
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.webhooks.fire_operations import AcceptFire, AddFire
from toolserver.webhooks.records import Attempt, PayerCounts
from toolserver.webhooks.store import WebhookStore, WebhookTables
from toolserver.webhooks.subscription_operations import AddSubscription, CancelSubscription, ForgetEnded
from toolserver.webhooks.unpaid_bodies import HOUR_MS, AdmitBody, ForgetUnpaid, RefuseBody, WithdrawBody

OWNER = "a" * 64
FIRE = f"call_{1:032x}"
DAY = 86_400_000
PER_HOUR = 10


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def store(request, tmp_path):
    async with opened_file(request.param, tmp_path) as file:
        yield WebhookStore(file)


async def admit(store, number, now=NOW, per_hour=PER_HOUR, **changes):
    """Send body `number`, by default to a target and host of its own."""
    own = {"url": f"https://{number}.example/", "host": f"{number}.example"} | changes
    return await store.apply(AdmitBody(f"call_{number}", subscription(number, **own), per_hour, now))


@dataclass(frozen=True)
class Pay:
    """Deliveries that an account has paid for."""

    payer: str
    credits: int

    def on(self, tables):
        tables.count_payer(self.payer, PayerCounts(paid=self.credits))


@dataclass(frozen=True)
class Slot:
    """Five minutes of an owner who refuses everything: five bodies with a price and five free, in one transaction."""

    number: int

    def on(self, tables):
        """Return how many were sent of each kind."""
        refused = free = 0
        now = NOW + self.number * HOUR_MS // 12
        for number in range(5 * self.number, 5 * self.number + 5):
            host = f"{number % 100}.example"
            target = subscription(number, payer=OWNER, owner=f"{number % 7:064x}", host=host, url=f"https://{host}/")
            refused += AdmitBody(f"call_{number}", target, PER_HOUR, now).on(tables) in ("send", "challenge")
            RefuseBody(f"call_{number}").on(tables)
            missing = AdmitBody(f"call_f{number}", target, PER_HOUR, now, is_free=True)
            free += missing.on(tables) in ("send", "challenge")
        ForgetUnpaid(now).on(tables)
        return refused, free


async def refuse(store, number, *arguments, **changes):
    admission = await admit(store, number, *arguments, **changes)
    await store.apply(RefuseBody(f"call_{number}"))
    return admission


@proves("webhook.unpaid-bodies", "webhook.challenge")
async def test_an_account_has_so_many_unpaid_bodies_in_any_hour_over_tokens_targets_and_hosts(store):
    payer = {"payer": OWNER}
    await store.apply(Pay(OWNER, 50))
    admissions = [await refuse(store, n, NOW + n, owner=f"{n:064x}", **payer) for n in range(PER_HOUR)]
    assert admissions == ["send"] * 3 + ["challenge"] * 7
    assert await admit(store, 20, NOW + 20, owner="b" * 64, **payer) == "refuse"
    assert await admit(store, 20, NOW + HOUR_MS - 1, **payer) == "refuse"
    assert await admit(store, 20, NOW + HOUR_MS, **payer) == "challenge"
    assert await admit(store, 21, NOW + HOUR_MS, **payer) == "refuse", "one place is free with each that is an hour old"
    assert await admit(store, 22, NOW, owner="c" * 64) == "send", "others are not concerned"


@proves("webhook.unpaid-bodies")
@pytest.mark.parametrize("paid", [0, 7, 40])
async def test_over_its_life_an_account_has_at_most_three_unpaid_bodies_for_each_credit_that_it_paid(store, paid):
    """A hundred names of one owner, whose allowances subscribe to all of them in every slot, for thirty hours."""
    await store.apply(Pay(OWNER, paid))
    sent = [await store.apply(Slot(slot)) for slot in range(30 * 12)]
    refused, free = (sum(counts) for counts in zip(*sent, strict=True))
    assert refused == max(PER_HOUR, 2 * paid)
    assert refused + free <= max(2 * PER_HOUR, 3 * paid), "ten of each before it pays, and then three for each credit"


async def test_free_bodies_are_bounded_too_and_take_nothing_from_deliveries_with_a_price(store):
    for number in range(2 * PER_HOUR):
        now = NOW + number * HOUR_MS
        free = AdmitBody(f"call_{number}", subscription(), PER_HOUR, now, is_free=True)
        assert (await store.apply(free) == "only_challenge") == (number >= PER_HOUR)
    assert await admit(store, 30, NOW + 40 * HOUR_MS) == "send", "an alert is not lost because values were missing"


async def test_a_body_that_is_paid_for_gives_two_more_and_one_that_was_not_sent_counts_for_nothing(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    await store.apply(Pay(OWNER, 5))
    for number in range(PER_HOUR):
        await refuse(store, number, NOW + number * HOUR_MS)
    later = NOW + 20 * HOUR_MS
    assert await admit(store, 20, later) == "only_challenge"
    await store.apply(Pay(OWNER, 1))
    assert await store.apply(AdmitBody(FIRE, subscription(), PER_HOUR, later)) == "send"
    await store.apply(AcceptFire(FIRE, Attempt(204, None, 5), later))  # a seventh credit
    for number in range(20, 24):
        assert await admit(store, number, later) == "send"
    assert await admit(store, 24, later) == "only_challenge"
    await store.apply(WithdrawBody("call_23"))
    assert await admit(store, 24, later) == "send"


async def test_a_body_in_flight_counts_until_it_is_paid_for_or_was_not_sent(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    for number in range(PER_HOUR - 1):
        assert await admit(store, number) == "send", "before an answer nothing is refused"
    assert await store.apply(AdmitBody(FIRE, subscription(), PER_HOUR, NOW)) == "send"
    assert await admit(store, 20) == "refuse"
    assert await store.apply(AdmitBody(FIRE, subscription(), PER_HOUR, NOW)) == "send", "an attempt again is no more"
    await store.apply(AcceptFire(FIRE, Attempt(204, None, 5), NOW))
    assert await admit(store, 20) == "send"
    assert await admit(store, 21) == "refuse"
    await store.apply(WithdrawBody("call_20"))
    assert await admit(store, 21) == "send"


async def test_a_free_body_that_was_accepted_stays_counted(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire(kind="no_data", price=0)))
    await store.apply(AdmitBody(FIRE, subscription(), 1, NOW))
    await store.apply(AcceptFire(FIRE, Attempt(204, None, 5), NOW))
    assert await admit(store, 20, per_hour=1) == "refuse"


@pytest.mark.parametrize("shared", [{"url": "https://a.example/"}, {"host": "a.example"}])
async def test_a_target_or_host_that_refused_others_is_challenged_unless_it_accepts_ones_own(store, shared):
    for number in range(PER_HOUR + 1):
        await refuse(store, number, owner=f"{number:064x}", **shared)
    assert await admit(store, 20, owner="b" * 64, **shared) == "challenge", "and never refused"
    assert await admit(store, 21, owner="c" * 64, delivered_count=1, **shared) == "send"
    assert await admit(store, 22, owner="d" * 64, delivered_count=1, consecutive_failures=1, **shared) == "challenge"


@proves("webhook.unpaid-bodies")
async def test_a_new_subscription_continues_the_counts_of_the_old_one(store):
    for number in range(PER_HOUR):
        await store.apply(AddSubscription(subscription(number)))
        await refuse(store, number)
        await store.apply(CancelSubscription(f"wh_{number:016x}", OWNER, NOW))
    await store.apply(ForgetEnded(NOW + 91 * DAY))
    assert await admit(store, 20) == "refuse"


async def test_what_is_an_hour_old_is_forgotten_and_the_future_counts_from_now_on(store):
    for owner in (OWNER, "b" * 64):
        await store.apply(Pay(owner, 50))
    await refuse(store, 1, NOW - HOUR_MS)
    await refuse(store, 2, NOW + DAY, owner="b" * 64)
    await store.apply(ForgetUnpaid(NOW))
    assert await admit(store, 1, NOW - HOUR_MS + 1, per_hour=1) == "send", "it would be refused if it still counted"
    assert await admit(store, 3, NOW, per_hour=1, owner="b" * 64) == "refuse"
    assert await admit(store, 3, NOW + HOUR_MS, per_hour=1, owner="b" * 64) == "send"


@pytest.mark.parametrize("engine", ["sqlite", POSTGRES])
async def test_a_token_that_replaces_a_lost_one_continues_its_counts(engine, tmp_path):
    async with opened_file(engine, tmp_path) as file:
        store = WebhookStore(file)
        for number in range(PER_HOUR):
            await refuse(store, number)
        await file.alone(lambda db: WebhookTables(db).move_owner(OWNER, "b" * 64))
        assert await admit(store, 20, owner="b" * 64) == "refuse"
