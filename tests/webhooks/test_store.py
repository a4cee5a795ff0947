"""The contract of the store, over every engine."""

import asyncio

import pytest

from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from tests.requirements import proves
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.errors import NotFound, SubscriptionConflict
from toolserver.sql.sqlite import durable
from toolserver.webhooks.fire_operations import (
    FAILING_AT_ONCE,
    AcceptFire,
    AddFire,
    ClaimFires,
    ClaimSubscriptions,
    FinishFire,
    PostponeFire,
    PrepareFire,
    RecordEvaluation,
    RepairClock,
    RetryFire,
)
from toolserver.webhooks.records import FAST, NEW, SLOT_MS, SLOW, Attempt
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import (
    AddSubscription,
    CancelSubscription,
    EndFailing,
    ForgetEnded,
    PauseSubscription,
    ReplaceSealed,
    ResumeSubscription,
    SecretReplaced,
)

OWNER = "a" * 64
ID = f"wh_{1:016x}"
FIRE = f"call_{1:032x}"
DAY = 86_400_000


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def store(request, tmp_path):
    async with opened_file(request.param, tmp_path) as file:
        yield WebhookStore(file)


async def test_what_was_added_is_found_again_field_by_field(store):
    added = subscription(params=b'{"a":1}', description="d", condition=b"{}", condition_state=b"{}")
    await store.apply(AddSubscription(added))
    assert await store.subscription(ID) == added
    assert await store.subscription("wh_nothing") is None
    assert await store.owned(OWNER) == [added]
    assert await store.owned("b" * 64) == []
    assert await store.all(10) == [added]
    assert await store.all(10, "paused") == []


async def test_the_sixth_active_subscription_is_refused(store):
    for number in range(5):
        await store.apply(AddSubscription(subscription(number)))
    with pytest.raises(SubscriptionConflict):
        await store.apply(AddSubscription(subscription(6)))
    await store.apply(AddSubscription(subscription(7, owner="b" * 64)))
    await store.apply(CancelSubscription(f"wh_{0:016x}", OWNER, NOW))
    await store.apply(AddSubscription(subscription(8)))


async def test_of_fifty_subscriptions_made_at_once_five_are_stored(store):
    rows = [store.apply(AddSubscription(subscription(number))) for number in range(50)]
    outcomes = await asyncio.gather(*rows, return_exceptions=True)
    assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 5
    assert sum(isinstance(outcome, SubscriptionConflict) for outcome in outcomes) == 45
    assert len(await store.owned(OWNER)) == 5


async def test_resuming_and_adding_at_once_never_makes_six(store):
    for number in range(10):
        await store.apply(AddSubscription(subscription(number)))
        await store.apply(PauseSubscription(f"wh_{number:016x}", OWNER, "owner", NOW))
    jobs = [store.apply(ResumeSubscription(f"wh_{number:016x}", OWNER, NOW)) for number in range(10)]
    jobs += [store.apply(AddSubscription(subscription(number))) for number in range(10, 20)]
    await asyncio.gather(*jobs, return_exceptions=True)
    assert sum(s.state == "active" for s in await store.owned(OWNER)) == 5


async def test_twenty_are_kept_and_cancelled_ones_make_room(store):
    for number in range(20):
        await store.apply(AddSubscription(subscription(number)))
        await store.apply(PauseSubscription(f"wh_{number:016x}", OWNER, "owner", NOW + number))
    with pytest.raises(SubscriptionConflict):
        await store.apply(AddSubscription(subscription(20)))
    await store.apply(CancelSubscription(f"wh_{3:016x}", OWNER, NOW))
    await store.apply(AddSubscription(subscription(21)))
    owned = await store.owned(OWNER)
    assert len(owned) == 20
    assert f"wh_{3:016x}" not in {s.id for s in owned}


async def test_another_owner_finds_nothing_and_the_operator_everything(store):
    await store.apply(AddSubscription(subscription()))
    other = "b" * 64
    for operation in (
        CancelSubscription(ID, other, NOW),
        PauseSubscription(ID, other, "owner", NOW),
        ResumeSubscription(ID, other, NOW),
        ReplaceSealed(ID, other, b"sealed", b"new"),
        CancelSubscription("wh_nothing", None, NOW),
    ):
        with pytest.raises(NotFound):
            await store.apply(operation)
    assert (await store.apply(PauseSubscription(ID, None, "operator", NOW))).pause_reason == "operator"


async def test_a_cancelled_subscription_stays_cancelled_and_never_comes_due(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(CancelSubscription(ID, OWNER, NOW))
    assert (await store.apply(CancelSubscription(ID, OWNER, NOW + 1))).paused_at == NOW
    assert (await store.apply(PauseSubscription(ID, OWNER, "owner", NOW))).state == "cancelled"
    with pytest.raises(SubscriptionConflict):
        await store.apply(ResumeSubscription(ID, OWNER, NOW))
    assert await store.apply(ClaimSubscriptions(NOW + DAY, 10)) == []


async def test_a_paused_subscription_does_not_come_due_and_goes_on_with_its_next_slot(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(PauseSubscription(ID, OWNER, "insufficient_credits", NOW))
    assert await store.apply(ClaimSubscriptions(NOW + DAY, 10)) == []
    resumed = await store.apply(ResumeSubscription(ID, OWNER, NOW + DAY + 7))
    assert (resumed.state, resumed.pause_reason, resumed.due_at) == ("active", None, NOW + DAY + SLOT_MS)
    assert await store.apply(ResumeSubscription(ID, OWNER, NOW + 2 * DAY)) == resumed


@proves("webhook.resume")
async def test_a_failing_endpoint_is_resumed_after_a_cooldown(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(PauseSubscription(ID, None, "endpoint_failing", NOW))
    with pytest.raises(SubscriptionConflict) as refused:
        await store.apply(ResumeSubscription(ID, OWNER, NOW + 1000))
    assert refused.value.headers == {"Retry-After": "299"}
    assert (await store.apply(ResumeSubscription(ID, OWNER, NOW + 300_000))).state == "active"


async def test_secrets_are_replaced_only_by_those_who_read_them(store):
    await store.apply(AddSubscription(subscription()))
    assert (await store.apply(ReplaceSealed(ID, OWNER, b"sealed", b"new"))).sealed == b"new"
    with pytest.raises(SecretReplaced):
        await store.apply(ReplaceSealed(ID, OWNER, b"sealed", b"newer"))


async def test_what_is_due_is_claimed_once_in_the_order_of_its_time_and_gets_one_fire(store):
    for number, due in ((1, 50), (2, 10), (3, 90)):
        await store.apply(AddSubscription(subscription(number, owner=f"{number}" * 64, due_at=NOW + due)))
    first = await store.apply(ClaimSubscriptions(NOW + 60, 1))
    assert [s.id for s in first] == [f"wh_{2:016x}"]
    assert first[0].due_at == NOW + SLOT_MS
    assert [s.id for s in await store.apply(ClaimSubscriptions(NOW + 60, 10))] == [ID]
    assert await store.apply(ClaimSubscriptions(NOW + 60, 10)) == []
    (fired,) = await store.fires(ID, 10)
    assert (fired.kind, fired.price, fired.state, fired.due_at, fired.lane) == (
        "data",
        1,
        "open",
        NOW + 60,
        NEW,
    )
    assert fired.expires_at == NOW + SLOT_MS


async def test_two_timers_at_once_share_what_is_due(store):
    for number in range(40):
        await store.apply(AddSubscription(subscription(number, owner=f"{number:064x}", due_at=NOW)))
    claimed = await asyncio.gather(*(store.apply(ClaimSubscriptions(NOW, 7)) for _ in range(8)))
    claimed_ids = [s.id for batch in claimed for s in batch]
    assert len(claimed_ids) == len(set(claimed_ids)) == 40


async def test_whoever_is_days_late_has_one_fire(store):
    await store.apply(AddSubscription(subscription()))
    (late,) = await store.apply(ClaimSubscriptions(NOW + 3 * DAY + 5, 10))
    assert late.due_at == NOW + 3 * DAY + SLOT_MS
    assert len(await store.fires(ID, 10)) == 1


async def test_a_condition_is_judged_before_it_gets_a_fire(store):
    await store.apply(AddSubscription(subscription(condition=b"{}")))
    assert len(await store.apply(ClaimSubscriptions(NOW + SLOT_MS, 10))) == 1
    assert await store.fires(ID, 10) == []
    assert await store.apply(RecordEvaluation(ID, None, b'{"a":1}', fire()))
    assert (await store.subscription(ID)).condition_state == b'{"a":1}'
    assert [f.id for f in await store.fires(ID, 10)] == [FIRE]
    assert not await store.apply(RecordEvaluation(ID, None, b'{"b":1}', fire(2)))
    assert len(await store.fires(ID, 10)) == 1


async def test_a_fire_is_claimed_by_its_lane_once_until_its_lease_ends(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire(1, lane=SLOW)))
    assert await store.apply(ClaimFires(NOW, {FAST: 10}, 60_000)) == []
    (claimed,) = await store.apply(ClaimFires(NOW, {SLOW: 10}, 60_000))
    assert (claimed.fire.claims, claimed.fire.interrupted, claimed.subscription.id) == (1, False, ID)
    assert await store.apply(ClaimFires(NOW + 59_999, {SLOW: 10}, 60_000)) == []
    (again,) = await store.apply(ClaimFires(NOW + 60_000, {SLOW: 10}, 60_000))
    assert again.fire.interrupted


async def test_a_fire_whose_subscription_is_gone_is_skipped(store):
    await store.apply(AddFire(fire()))
    assert await store.apply(ClaimFires(NOW, {NEW: 10}, 60_000)) == []
    assert (await store.fire(FIRE)).state == "skipped"


async def test_a_fire_moves_from_open_to_accepted_to_charged_and_never_back(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    await store.apply(PrepareFire(FIRE, "digest", NOW - 9, NOW + 1))
    accepted = await store.apply(AcceptFire(FIRE, Attempt(200, None, 12), NOW + 2))
    assert (accepted.state, accepted.attempts, accepted.status, accepted.payload) == ("accepted", 1, 200, "digest")
    assert (await store.apply(AcceptFire(FIRE, Attempt(204, None, 13), NOW + 3))) == accepted
    over = await store.apply(FinishFire(FIRE, "charged", None, NOW + 4))
    assert (over.state, over.finished_at) == ("charged", NOW + 4)
    assert await store.apply(PostponeFire(FIRE, NOW)) is None
    assert await store.apply(FinishFire(FIRE, "released", "delivery_failed", NOW + 5)) == over
    after = await store.subscription(ID)
    assert (after.delivered_count, after.last_delivered_at, after.last_status) == (1, NOW + 2, 200)
    assert after.failed_count == 0
    assert await store.apply(ClaimFires(NOW + DAY, {NEW: 10}, 60_000)) == []


async def test_what_a_fire_carries_is_settled_once_and_its_subscription_is_as_it_is_now(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    ready = await store.apply(PrepareFire(FIRE, "first", NOW - 9, NOW + 1))
    assert (ready.fire.payload, ready.fire.captured_at, ready.fire.sent_at) == ("first", NOW - 9, NOW + 1)
    await store.apply(CancelSubscription(ID, OWNER, NOW))
    again = await store.apply(PrepareFire(FIRE, "second", NOW, NOW + 2))
    assert (again.fire, again.subscription.state) == (ready.fire, "cancelled")
    await store.apply(AcceptFire(FIRE, Attempt(200, None, 12), NOW + 3))
    assert await store.apply(PrepareFire(FIRE, "third", NOW, NOW + 4)) is None
    assert await store.apply(PrepareFire("call_nothing", "first", NOW, NOW)) is None


async def test_failing_endpoints_are_claimed_last_and_a_few_at_a_time(store):
    for number in range(2 * FAILING_AT_ONCE):
        late = subscription(number, owner=f"{number:064x}", due_at=NOW - 1, consecutive_failures=number % 2, slow=1)
        await store.apply(AddSubscription(late))
    for number in range(900, 910):
        await store.apply(AddSubscription(subscription(number, owner=f"{number:064x}", due_at=NOW)))
    first = await store.apply(ClaimSubscriptions(NOW, 500))
    assert [s.id for s in first[:10]] == [f"wh_{number:016x}" for number in range(900, 910)]
    assert len(first) == 10 + FAILING_AT_ONCE
    assert len(await store.apply(ClaimSubscriptions(NOW, 20))) == 20
    assert len(await store.apply(ClaimSubscriptions(NOW, 500))) == FAILING_AT_ONCE - 20


async def test_a_failed_fire_is_counted_once_and_thins_out_the_next_ones(store):
    await store.apply(AddSubscription(subscription()))
    for number in range(1, 4):
        await store.apply(AddFire(fire(number)))
        attempt = Attempt(500, "http_500", 9)
        finish = FinishFire(f"call_{number:032x}", "released", "delivery_failed", NOW, attempt)
        await store.apply(finish)
        await store.apply(finish)
    after = await store.subscription(ID)
    assert (after.consecutive_failures, after.failed_count, after.failing_since) == (3, 3, NOW)
    assert (after.last_status, after.last_error, after.lane) == (500, "http_500", SLOW)
    assert after.due_at == NOW + 6 * SLOT_MS


async def test_a_release_for_other_reasons_is_no_failure_of_the_endpoint(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    await store.apply(FinishFire(FIRE, "released", "stale_data", NOW))
    assert (await store.subscription(ID)).failed_count == 0


async def test_the_log_keeps_the_last_fifty_fires(store):
    await store.apply(AddSubscription(subscription()))
    for number in range(1, 60):
        await store.apply(AddFire(fire(number)))
        await store.apply(FinishFire(f"call_{number:032x}", "charged", None, NOW))
    log = await store.fires(ID, 100)
    assert [f.id for f in log] == [f"call_{number:032x}" for number in range(59, 9, -1)]
    assert [f.id for f in await store.fires(ID, 2, f"call_{20:032x}")] == [f"call_{n:032x}" for n in (19, 18)]


async def test_the_log_is_in_the_order_of_its_fires_whatever_their_ids_say(store):
    await store.apply(AddSubscription(subscription()))
    for number in range(160, 100, -1):
        await store.apply(AddFire(fire(number)))
        await store.apply(FinishFire(f"call_{number:032x}", "charged", None, NOW))
    log = [f.id for f in await store.fires(ID, 100)]
    assert log == [f"call_{number:032x}" for number in range(101, 151)]
    assert [f.id for f in await store.fires(ID, 2, log[3])] == log[4:6]
    assert await store.fires(ID, 2, "call_nothing") == []


async def test_what_was_cancelled_ninety_days_ago_is_forgotten_with_its_log(store):
    for number in (1, 2, 3):
        await store.apply(AddSubscription(subscription(number)))
    await store.apply(AddFire(fire(7)))
    await store.apply(FinishFire(f"call_{7:032x}", "charged", None, NOW))
    await store.apply(AddFire(fire(8, subscription=f"wh_{2:016x}")))
    await store.apply(AcceptFire(f"call_{8:032x}", Attempt(200, None, 1), NOW))
    for number in (1, 2):
        await store.apply(CancelSubscription(f"wh_{number:016x}", OWNER, NOW))
    assert await store.apply(ForgetEnded(NOW + 90 * DAY)) == 0
    assert await store.apply(ForgetEnded(NOW + 90 * DAY + 1)) == 1
    assert await store.subscription(ID) is None
    assert await store.fire(f"call_{7:032x}") is None
    assert await store.subscription(f"wh_{2:016x}") is not None, "one of its fires is still to be charged"
    assert await store.subscription(f"wh_{3:016x}") is not None


async def test_the_five_are_counted_over_all_tokens_that_spend_the_same_credits(store):
    for number in range(5):
        await store.apply(AddSubscription(subscription(number, owner=f"{number}" * 64, payer=OWNER)))
    with pytest.raises(SubscriptionConflict):
        await store.apply(AddSubscription(subscription(6)))
    with pytest.raises(SubscriptionConflict):
        await store.apply(AddSubscription(subscription(7, owner="7" * 64, payer=OWNER)))
    assert len(await store.owned(OWNER)) == 5
    assert [s.id for s in await store.owned("3" * 64)] == [f"wh_{3:016x}"]
    await store.apply(CancelSubscription(f"wh_{3:016x}", OWNER, NOW))
    with pytest.raises(NotFound):
        await store.apply(CancelSubscription(f"wh_{4:016x}", "3" * 64, NOW))


async def test_a_clock_that_was_set_back_a_day_stops_nobody(store):
    await store.apply(AddSubscription(subscription(due_at=NOW + SLOT_MS)))
    await store.apply(AddFire(fire(due_at=NOW + 5_000)))
    back = NOW - DAY
    assert await store.apply(RepairClock(back)) == 2
    assert (await store.subscription(ID)).due_at in range(back, back + SLOT_MS + 1)
    (claimed,) = await store.apply(ClaimFires(back, {NEW: 10}, 60_000))
    assert claimed.fire.expires_at <= back + SLOT_MS
    assert await store.apply(RepairClock(back)) == 0


async def test_a_clock_that_was_set_back_an_hour_delays_healthy_endpoints_by_no_more_than_a_slot(store):
    await store.apply(AddSubscription(subscription(1, due_at=NOW + SLOT_MS)))
    thinned = subscription(2, due_at=NOW + 12 * SLOT_MS, consecutive_failures=6)
    await store.apply(AddSubscription(thinned))
    await store.apply(AddFire(fire(due_at=NOW + 5_000)))
    assert await store.apply(RepairClock(NOW)) == 0
    back = NOW - 3_600_000
    assert await store.apply(RepairClock(back)) == 3
    assert (await store.subscription(ID)).due_at <= back + SLOT_MS
    assert (await store.fire(FIRE)).due_at == back


async def test_thirty_days_of_failures_end_a_subscription_that_was_paused_for_them(store):
    for number, days, pause in (
        (1, 30, "endpoint_failing"),
        (2, 29, "endpoint_failing"),
        (3, 40, "endpoint_gone"),
        (4, 50, "insufficient_credits"),
        (5, 50, None),
    ):
        await store.apply(AddSubscription(subscription(number, failing_since=NOW - days * DAY)))
        if pause:
            await store.apply(PauseSubscription(f"wh_{number:016x}", None, pause, NOW))
    assert await store.apply(EndFailing(NOW)) == [f"wh_{3:016x}", ID]
    assert await store.apply(EndFailing(NOW)) == []
    assert (await store.subscription(ID)).state == "cancelled"
    assert (await store.subscription(f"wh_{4:016x}")).state == "paused", "it waits for credits, not for its endpoint"
    assert (await store.subscription(f"wh_{5:016x}")).state == "active", "it may have had nothing to deliver since"


async def test_the_next_due_time_is_that_of_the_first_subscription_or_fire(store):
    assert await store.next_due() is None
    await store.apply(AddSubscription(subscription(due_at=NOW + 100)))
    assert await store.next_due() == NOW + 100
    await store.apply(AddFire(fire(lane=SLOW, due_at=NOW + 50)))
    assert await store.next_due() == NOW + 50


async def test_a_payload_is_kept_until_it_was_not_used_for_long_enough(store):
    await store.save_payload("d1", b"body" * 100, NOW)
    await store.save_payload("d2", b"other", NOW)
    await store.save_payload("d1", b"body" * 100, NOW + 10)
    assert await store.payload("d1") == b"body" * 100
    assert await store.forget_payloads(NOW + 5) == 1
    assert (await store.payload("d1"), await store.payload("d2")) == (b"body" * 100, None)


async def test_a_payload_is_kept_while_an_open_fire_carries_it(store):
    await store.save_payload("d1", b"body", NOW)
    await store.apply(AddFire(fire(payload="d1")))
    await store.apply(AddFire(fire(2)))
    assert await store.forget_payloads(NOW + DAY) == 0
    await store.apply(FinishFire(FIRE, "charged", None, NOW))
    assert await store.forget_payloads(NOW + DAY) == 1


async def test_a_fire_whose_turn_did_not_come_was_not_interrupted(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    await store.apply(ClaimFires(NOW, {NEW: 10}, 60_000))
    postponed = await store.apply(PostponeFire(FIRE, NOW + 1000))
    assert (postponed.due_at, postponed.claims, postponed.attempts) == (NOW + 1000, 0, 0)
    (claimed,) = await store.apply(ClaimFires(NOW + 1000, {NEW: 10}, 60_000))
    assert not claimed.fire.interrupted


async def test_an_attempt_without_an_answer_leaves_the_status_of_the_one_before(store):
    await store.apply(AddSubscription(subscription()))
    await store.apply(AddFire(fire()))
    await store.apply(RetryFire(FIRE, Attempt(503, "http_503", 7), NOW + 5000))
    failed = await store.apply(RetryFire(FIRE, Attempt(None, "timeout", 9), NOW + 35_000))
    assert (failed.status, failed.error, failed.duration_ms) == (503, "timeout", 9)
    assert (failed.attempts, failed.lane, failed.due_at) == (2, SLOW, NOW + 35_000)


async def test_everything_is_there_after_the_file_was_closed(tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = WebhookStore(file)
        await store.apply(AddSubscription(subscription(condition=b"{}", sealed=b"\x00\xff")))
        await store.apply(AddFire(fire(condition=b"{}", state_before=b"b", state_after=b"a")))
        await store.save_payload("d", b"body", NOW)
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = WebhookStore(file)
        assert await store.all(10) == [subscription(condition=b"{}", sealed=b"\x00\xff")]
        assert await store.fire(fire().id) == fire(condition=b"{}", state_before=b"b", state_after=b"a", seq=1)
        assert await store.payload("d") == b"body"


async def test_two_processes_never_claim_the_same(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    async with durable(path) as one, durable(path) as other:
        stores = [WebhookStore(one), WebhookStore(other)]
        await stores[0].apply(AddSubscription(subscription()))
        for number in range(60):
            await stores[0].apply(AddFire(fire(number)))
        jobs = [stores[n % 2].apply(ClaimFires(NOW, {1: 5}, 60_000)) for n in range(16)]
        claimed = [each.fire.id for batch in await asyncio.gather(*jobs) for each in batch]
        assert len(claimed) == len(set(claimed)) == 60


async def test_a_payload_is_kept_compressed(tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        await WebhookStore(file).save_payload("d", b"a" * 100_000, NOW)
        size = await file.read(lambda db: db.execute("SELECT length(body) FROM webhook_payload").fetchone()[0])
        assert size < 1000
