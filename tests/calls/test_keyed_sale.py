"""A paid call with a key, answered from the cache: one durable commit, all of it or nothing, and once for everybody."""

from contextlib import suppress

import anyio
import pytest

from tests.calls.charging import RICH, open_stand
from tests.calls.parts import RICH as BUYER
from tests.calls.parts import START
from tests.calls.shop import shop
from tests.calls.test_paid_call import buy, service
from tests.calls.toy import FIRST
from tests.postgres import POSTGRES
from tests.requirements import proves
from toolserver.calls import charge_store
from toolserver.calls.idempotency import KEY_LENGTH, KeptResult, KeyClaim, KeyedCharge, KeyTaken, SharedBytes
from toolserver.calls.response import sending
from toolserver.clock import ManualClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.errors import IdempotencyConflict, InsufficientCredits, InvalidArguments
from toolserver.sql.sqlite import commit_group

NAME = ("scope", "key")
PAYLOAD = SharedBytes(b"payload")


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def stand(request, tmp_path):
    async with open_stand(tmp_path, request.param) as stand:
        yield stand


def keyed(name=NAME, request="r"):
    return KeyedCharge(
        KeyClaim(name, request), lambda settled, receipt: KeptResult(b"%d " % settled.remaining, PAYLOAD)
    )


async def sell(stand, call_id=None, **more):
    return await stand.buy(call_id or new_call_id(), keyed=keyed(**more))


async def known(stand, name=NAME):
    return await stand.keys.begin(name, "asked", "call_new")


async def test_a_charge_stores_its_key_with_the_result_and_the_receipt(stand):
    call_id = new_call_id()
    _, receipt = await sell(stand, call_id)
    assert await known(stand) == ("r", call_id, b"98 " + receipt.jws.encode() + b"\n" + PAYLOAD.content)


async def test_a_key_that_is_taken_is_not_charged_and_names_the_call_that_has_it(stand):
    first = new_call_id()
    await sell(stand, first)
    with pytest.raises(KeyTaken) as taken:
        await sell(stand, request="another")
    assert taken.value.earlier == await known(stand)
    assert taken.value.earlier.call_id == first
    assert await stand.ledger.balance(RICH) == 98


async def test_of_a_group_those_whose_key_is_taken_are_refused_and_the_others_are_sold(stand):
    await sell(stand)
    outcomes = {}

    async def one(key):
        try:
            outcomes[key] = (await sell(stand, name=("scope", key)))[0].charged
        except KeyTaken:
            outcomes[key] = "taken"

    async with anyio.create_task_group() as tasks:
        for key in ("a", "key", "b"):
            tasks.start_soon(one, key)
    assert outcomes == {"a": 2, "key": "taken", "b": 2}
    assert await stand.ledger.balance(RICH) == 94


async def test_a_withdrawn_charge_takes_its_key_with_it(stand):
    call_id = new_call_id()
    await sell(stand, call_id)
    await sell(stand, name=("scope", "other"))
    stand.store.withdraw(call_id, token_hash(RICH).hex(), NAME)
    await stand.ledger.sweep()
    assert (await known(stand)).call_id == "call_new"
    assert (await known(stand, ("scope", "other"))).result is not None
    assert await stand.ledger.balance(RICH) == 98


class Killed(Exception):
    """The process ended at this step."""


STEPS = ("find_keyed", "issue_receipts", "store_keyed", "after")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("engine", ["sqlite", POSTGRES])
async def test_what_ends_between_two_steps_leaves_nothing(tmp_path, monkeypatch, engine, step):
    async with open_stand(tmp_path, engine) as stand:
        if step == "after":
            charge_new = charge_store.SqlChargeStore._charge_new

            def dies(*given):
                charge_new(*given)
                raise Killed

            monkeypatch.setattr(charge_store.SqlChargeStore, "_charge_new", dies)
        else:

            def dies(*given):
                raise Killed

            monkeypatch.setattr(charge_store, step, dies)
        call_id = new_call_id()
        with pytest.raises(Killed):
            await sell(stand, call_id)
        monkeypatch.undo()
        assert await stand.ledger.balance(RICH) == 100
        assert not await stand.has_receipt(call_id)
        tables = "SELECT (SELECT count(*) FROM idempotency), (SELECT count(*) FROM shared_result)"
        assert await stand.ledger.file.read(lambda db: tuple(db.execute(tables).fetchone())) == (0, 0)
        assert (await sell(stand))[0].remaining == 98


@proves("charge.delivered")
async def test_an_answer_that_was_not_sent_takes_its_key_with_it_and_one_that_was_does_not(tmp_path):
    sent, lost = new_call_id(), new_call_id()
    async with open_stand(tmp_path) as stand:
        await sell(stand, sent, name=("s", "sent"))
        await sell(stand, lost, name=("s", "lost"))
        stand.ledger.delivered(sent)
    async with open_stand(tmp_path) as stand:
        assert await stand.store.release_undelivered() == 1
        assert (await known(stand, ("s", "sent"))).call_id == sent
        assert (await known(stand, ("s", "lost"))).call_id == "call_new"


@pytest.mark.live
async def test_two_instances_that_are_asked_at_the_same_time_charge_once(tmp_path):
    async with open_stand(tmp_path, "postgres") as one, open_stand(tmp_path, "postgres") as other:
        for number in range(20):
            outcomes = []

            async def ask(stand, name, outcomes):
                try:
                    outcomes.append((await sell(stand, name=name))[0].charged)
                except KeyTaken:
                    outcomes.append("taken")

            async with anyio.create_task_group() as tasks:
                for stand in (one, other):
                    tasks.start_soon(ask, stand, ("scope", str(number)), outcomes)
            assert sorted(map(str, outcomes)) == ["2", "taken"]
        assert await one.ledger.balance(RICH) == 60
        assert await one.ledger.check() == []


async def test_a_key_costs_no_commit_of_its_own(tmp_path, clock, monkeypatch):
    async with service(tmp_path, clock) as e:
        await buy(e)
        wrote = []

        def counting(db, group):
            before = db.total_changes
            outcomes = commit_group(db, group)
            wrote.append(db.total_changes > before)
            return outcomes

        monkeypatch.setattr("toolserver.sql.sqlite.commit_group", counting)

        async def count(**more):
            """A call, and how many transactions wrote something for it."""
            await e.ledger.file.alone(lambda db: None)  # what was only waiting for the next commit is written now
            wrote.clear()
            return await buy(e, **more), sum(wrote)

        plain, commits = await count()
        assert commits == 1
        with_key, commits = await count(idempotency_key="k")
        assert commits == 1
        again, commits = await count(idempotency_key="k")
        assert commits == 0
        assert again.receipt == with_key.receipt != plain.receipt
        assert again.rendered.payload == with_key.rendered.payload


class Gone(Exception):
    """The instance died before its answer was sent."""


@proves("charge.delivered")
async def test_what_was_not_sent_and_is_sent_again_for_its_key_stays_charged(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        await buy(e)
        left = (await buy(e)).credits_remaining
        with suppress(Gone), sending():
            first = await buy(e, idempotency_key="k")
            raise Gone
        again = await buy(e, idempotency_key="k")
        assert (again.receipt_id, again.credits_remaining) == (first.receipt_id, first.credits_remaining)
        await e.ledger.file.alone(lambda db: None)  # what was only waiting for the next commit is written now
        store = charge_store.SqlChargeStore(e.ledger, None)
        assert await store.release_undelivered() == 0
        assert await e.ledger.balance(BUYER) == first.credits_remaining < left


async def test_fifty_callers_with_the_same_key_are_charged_once(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        await buy(e)
        outcomes = []

        async def one():
            outcomes.append(await buy(e, idempotency_key="k"))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(one)
        assert await e.ledger.balance(BUYER) == 6
        assert len({outcome.receipt for outcome in outcomes}) == 1


async def test_the_same_key_for_another_call_is_refused_also_from_the_cache(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        await buy(e)
        await e.call("premium_report", {"history": "30d"}, token=BUYER)
        await buy(e, idempotency_key="k")
        with pytest.raises(IdempotencyConflict):
            await e.call("premium_report", {"history": "30d"}, token=BUYER, idempotency_key="k")


async def test_a_key_outlives_the_answer_it_was_sold_with(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        await buy(e)
        first = await buy(e, idempotency_key="k")
        clock.advance(3600)
        again = await buy(e, idempotency_key="k")
        assert (again.rendered.payload, again.receipt) == (first.rendered.payload, first.receipt)


async def test_a_call_that_cannot_be_paid_stores_no_key(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        for _ in range(5):
            await buy(e)
        with pytest.raises(InsufficientCredits):
            await buy(e, idempotency_key="k")
        assert await e.ledger.file.read(lambda db: db.execute("SELECT count(*) FROM idempotency").fetchone()) == (0,)


@pytest.mark.parametrize("key", ["", "x" * (KEY_LENGTH + 1)])
async def test_a_key_has_a_length(tmp_path, clock, key):
    async with service(tmp_path, clock) as e:
        with pytest.raises(InvalidArguments, match="must have 1 to 255 characters"):
            await buy(e, idempotency_key=key)
        assert (await buy(e, idempotency_key="x" * KEY_LENGTH)).charged == 2


async def test_with_its_key_the_same_answer_comes_again_over_both_faces_after_the_cache_has_another(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy()
        first = await s.buy(idempotency_key="k")
        s.internet.serves(FIRST, {"value": 99})
        s.clock.advance(3600)
        assert (await s.buy()).content != first.content
        again, told = await s.buy(idempotency_key="k"), await s.tell("premium_report", idempotency_key="k")

        for name in ("x-service-receipt", "x-credits-remaining", "content-digest", "content-length"):
            assert again.headers[name] == first.headers[name], name
        assert again.content == first.content
        assert told["_meta"]["receipt_id"] == first.headers["x-service-receipt-id"]
        assert await s.ledger.balance(BUYER) == 94


async def test_an_answer_that_has_to_be_made_is_sold_with_its_key_once_too(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        first, again = [await buy(e, idempotency_key="k") for _ in range(2)]
        assert (first.charged, first.credits_remaining) == (again.charged, again.credits_remaining) == (2, 8)
        assert (again.receipt, again.rendered.payload) == (first.receipt, first.rendered.payload)
        assert await e.ledger.balance(BUYER) == 8
