import asyncio
from datetime import UTC, datetime

import pytest

from tests.calls.parts import POOR, RICH
from tests.requirements import proves
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import open_room
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import AllowanceConflict, InvalidArguments, NotFound, SubscriptionConflict
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.webhooks.conditions import ConditionInput
from toolserver.webhooks.egress import PORTS, DnsLane, EgressGuard
from toolserver.webhooks.records import SubscriptionRequest
from toolserver.webhooks.signing import open_key
from toolserver.webhooks.subscriptions import check_headers, check_target


@pytest.fixture
async def room(tmp_path):
    async with open_room(tmp_path) as opened_room:
        yield opened_room


async def test_an_endpoint_may_be_written_in_any_case(room):
    created = await room.hooks.subscriptions.subscribe(RICH, request_for("Report"))
    assert created.subscription.endpoint == "report"


async def test_a_host_has_one_limit_however_it_is_written(room):
    hosts = {(await room.subscribe(url)).host for url in ("http://A.localhost/", "http://a.localhost./x")}
    assert hosts == {"a.localhost"}


async def test_an_unknown_endpoint_is_refused_with_those_that_exist(room):
    with pytest.raises(InvalidArguments, match="report"):
        await room.hooks.subscriptions.subscribe(RICH, request_for("nothing"))


def request_for(endpoint):
    return SubscriptionRequest(endpoint, f"https://1.1.1.1:{PORTS[0]}/")


async def test_a_test_of_what_is_cancelled_or_has_no_condition_is_refused(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        with pytest.raises(InvalidArguments, match="no condition"):
            await room.hooks.subscriptions.test(RICH, subscription.id, None, "fired")
        await room.hooks.subscriptions.cancel(RICH, subscription.id)
        for refused in (
            room.hooks.subscriptions.test(RICH, subscription.id, None, None),
            room.hooks.subscriptions.rotate_secret(RICH, subscription.id),
            room.hooks.subscriptions.resume(RICH, subscription.id),
        ):
            with pytest.raises(SubscriptionConflict):
                await refused
        assert receiver.requests == []


async def test_a_test_body_is_bounded(room):
    subscription = await room.subscribe("http://127.0.0.1:1/")
    with pytest.raises(InvalidArguments, match="at most"):
        await room.hooks.subscriptions.test(RICH, subscription.id, {"a": "b" * 40_000}, None)


async def test_a_test_reaches_a_paused_subscription_too(room):
    async with receiving(status(404)) as receiver:
        subscription = await room.subscribe(receiver.url())
        for _ in range(2 * 24 * 12 + 30):
            await room.pass_time(150)
        assert (await room.subscription(subscription.id)).state == "paused"
        receiver.answer = status(204)
        assert (await room.hooks.subscriptions.test(RICH, subscription.id, None, None)).state == "free"


async def test_a_delivery_is_sent_again_with_the_same_id_and_bytes_for_nothing(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        (fire,) = await room.fires(subscription.id)
        room.values(7)
        attempt = await room.hooks.subscriptions.resend(RICH, subscription.id, fire.id)
        assert (attempt.delivered, attempt.status, await room.spent()) == (True, 204, 1)
        first, again = receiver.requests
        assert (again.headers["webhook-id"], again.body) == (first.headers["webhook-id"], first.body)
        receiver.answer = status(500)
        assert (await room.hooks.subscriptions.resend(RICH, subscription.id, fire.id)).error == "http_500"
        assert await room.fires(subscription.id) == [fire], "the log stays as it is"
        test = await room.hooks.subscriptions.test(RICH, subscription.id, None, None)
        with pytest.raises(SubscriptionConflict, match="accepted"):
            await room.hooks.subscriptions.resend(RICH, subscription.id, test.id)
        room.clock.advance(3600)
        with pytest.raises(NotFound, match="an hour"):
            await room.hooks.subscriptions.resend(RICH, subscription.id, fire.id)
        assert (await room.spent(), await room.held()) == (1, 0)


async def test_a_body_that_was_not_paid_for_or_is_of_another_is_not_sent_again(room):
    async with receiving(status(500)) as receiver:
        one, other = [await room.subscribe(receiver.url(path=path)) for path in ("/a", "/b")]
        await room.pass_slots(2)
        refused = [fire for fire in await room.fires(one.id) if fire.state == "released"]
        before = len(receiver.requests)
        for subscription, id, error in (
            (one, refused[0].id, SubscriptionConflict),
            (other, refused[0].id, NotFound),
            (one, "call_" + "0" * 32, NotFound),
        ):
            with pytest.raises(error):
                await room.hooks.subscriptions.resend(RICH, subscription.id, id)
        with pytest.raises(NotFound):
            await room.hooks.subscriptions.resend(POOR, one.id, refused[0].id)
        await room.hooks.subscriptions.cancel(RICH, one.id)
        with pytest.raises(SubscriptionConflict):
            await room.hooks.subscriptions.resend(RICH, one.id, refused[0].id)
        assert len(receiver.requests) == before


async def test_a_no_data_test_has_no_new_value(room):
    async with receiving() as receiver:
        when = ConditionInput(path="one", above=1)
        subscription = await room.subscribe(receiver.url(), when=when)
        fire = await room.hooks.subscriptions.test(RICH, subscription.id, {"one": 5}, "no_data")
        assert fire.condition == b'{"name":"one","state":"no_data","old":null,"new":null}'


async def test_six_rotations_at_once_leave_every_secret_that_anyone_was_given_valid(room, tmp_path):
    subscription = await room.subscribe("http://127.0.0.1:1/")
    rotated = await asyncio.gather(*(room.hooks.subscriptions.rotate_secret(RICH, subscription.id) for _ in range(6)))
    stored = open_key(tmp_path).unseal((await room.subscription(subscription.id)).sealed)
    first = open_key(tmp_path).unseal(subscription.sealed).secret
    given = {first, *(one.secret for one in rotated)}
    assert len(given) == 7
    assert {stored.secret, *stored.older(room.clock.now().timestamp() * 1000)} == given


async def test_cancel_pause_and_cap_races_never_leave_six_active(room):
    ids = [(await room.subscribe("http://127.0.0.1:1/")).id for _ in range(5)]
    hooks = room.hooks.subscriptions
    jobs = [hooks.cancel(RICH, ids[0]), hooks.cancel(RICH, ids[1])]
    jobs += [room.subscribe("http://127.0.0.1:1/") for _ in range(10)]
    jobs += [hooks.resume(RICH, id) for id in ids]
    await asyncio.gather(*jobs, return_exceptions=True)
    listed = await hooks.list_kept(RICH)
    assert sum(each.state == "active" for each in listed) == 5
    assert not {ids[0], ids[1]} & {each.id for each in listed}


async def test_an_allowance_subscribes_only_to_what_it_may_pay_for(room):
    child, other = "svc_live_" + "c" * 64, "svc_live_" + "d" * 64
    for allowed, path in ((child, "/api/pro/report"), (other, "/api/pro/elsewhere")):
        terms = AllowanceTerms("agent", 9, tools={"tool": path})
        await room.shop.ledger.create_allowance(RICH, token_hash(allowed).hex(), terms)
    assert (await room.subscribe("http://127.0.0.1:1/", child)).state == "active"
    with pytest.raises(AllowanceConflict, match="does not cover"):
        await room.subscribe("http://127.0.0.1:1/", other)


async def test_allowances_share_the_five_of_their_token_and_spend_its_credits_up_to_their_caps(room):
    child, terms = "svc_live_" + "c" * 64, AllowanceTerms("mine", 2)
    allowance = await room.shop.ledger.create_allowance(RICH, token_hash(child).hex(), terms)
    async with receiving() as receiver:
        ids = [(await room.subscribe(receiver.url(), token=child)).id for _ in range(3)]
        own = [await room.subscribe(receiver.url()) for _ in range(2)]
        for token in (RICH, child):
            with pytest.raises(SubscriptionConflict):
                await room.subscribe(receiver.url(), token=token)
        await room.pass_slots()
        assert len(receiver.requests) == 4, "two of the token itself, and as many of the allowance as it may pay"
        await room.shop.ledger.revoke_allowance(RICH, allowance.id)
        await room.pass_slots()
        assert len(receiver.requests) == 6
    hooks = room.hooks.subscriptions
    assert {each.id for each in await hooks.list_kept(RICH)} == {*ids, *(each.id for each in own)}
    assert {each.id for each in await hooks.list_kept(child)} == set(ids)
    reasons = {id: (await room.subscription(id)).pause_reason for id in ids}
    assert sorted(reasons.values()) == ["expired", "expired", "insufficient_credits"]
    with pytest.raises(NotFound):
        await hooks.cancel(child, own[0].id)
    assert (await hooks.cancel(RICH, ids[0])).state == "cancelled"


async def test_what_is_not_ones_own_is_not_found(room):
    for job in (
        room.hooks.subscriptions.deliveries(RICH, "wh_nothing", 10, None),
        room.hooks.subscriptions.resume(RICH, "wh_nothing"),
        room.hooks.subscriptions.rotate_secret(RICH, "wh_nothing"),
    ):
        with pytest.raises(NotFound):
            await job


async def check(url, answer):
    lane = DnsLane(EgressGuard(), ManualClock(datetime(2027, 1, 1, tzinfo=UTC)), lookup=answer)
    try:
        return await check_target(lane, url)
    finally:
        lane.close()


def unknown(host):
    raise OSError(-2, "unknown")


async def test_a_name_is_looked_up_when_it_is_registered():
    assert str(await check("https://a.example/hook", lambda host: ["1.1.1.1"])) == "https://a.example/hook"
    with pytest.raises(InvalidArguments) as refused:
        await check("https://a.example/hook", lambda host: ["1.1.1.1", "10.0.0.1"])
    assert refused.value.extra["errors"][0]["type"] == "private_address"


async def test_a_name_without_an_address_yet_is_taken():
    assert await check("https://a.example/hook", unknown)


def test_custom_headers_are_taken_as_they_are():
    assert check_headers({"Authorization": "Bearer abc", "X-Env": "test"}) == {
        "Authorization": "Bearer abc",
        "X-Env": "test",
    }


@proves("webhook.reserved-headers")
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "a"},
        {"content-length": "1"},
        {"Content-Type": "text/plain"},
        {"Transfer-Encoding": "chunked"},
        {"User-Agent": "a"},
        {"Cookie": "a"},
        {"X-Service-Signature": "a"},
        {"WEBHOOK-ID": "a"},
        {"X-A": "a\nb"},
        {"X-A": "é"},
        {"X-A": "a" * 1025},
        {"X A": "a"},
        {"": "a"},
        {"X:A": "a"},
        {f"X-{n}": "a" for n in range(11)},
    ],
)
def test_headers_that_could_pass_for_ours_or_break_the_request_are_refused(headers):
    with pytest.raises(InvalidArguments) as refused:
        check_headers(headers)
    assert refused.value.extra["errors"][0]["loc"] == "headers"


def test_a_refusal_never_repeats_a_value():
    with pytest.raises(InvalidArguments) as refused:
        check_headers({"X-Key": "hidden\n"})
    assert "hidden" not in str(refused.value)
    assert "hidden" not in repr(refused.value.extra)
