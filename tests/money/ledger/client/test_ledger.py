"""Following a ledger: what is asked, what is done when no answer comes, and what is still owed to the owner then."""

import logging
import threading
from contextlib import asynccontextmanager

import anyio
import httpx
import msgspec
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import FOLLOWED, FOLLOWS, OWNER_URL, faults, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.core.http import MOST_BYTES, HttpClient, Unreachable
from toolserver.errors import InsufficientCredits, NotSupported, PaymentRequired
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.client.codec import seconds
from toolserver.money.ledger.client.ledger import open_ledger_client
from toolserver.money.ledger.client.messages import COMMIT, REPLY_SIGNATURE, VALIDATE, reply_mac, signature
from toolserver.money.ledger.protocol import CallReused, UnknownCall
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.settings import LedgerSettings as Settings

RICH = token(1)
DOWN, LOST = httpx.ConnectError("refused"), httpx.ReadTimeout("lost")


class Line(httpx.AsyncBaseTransport):
    """The way to the owner. What is `planned` happens to requests first: before they arrive, or after (`lost`)."""

    def __init__(self, app):
        self.inner, self.asked = httpx.ASGITransport(app), []
        self.down, self.planned, self.lost = None, [], []

    async def handle_async_request(self, request):
        self.asked.append(request.url.path)
        if self.down is not None or self.planned:
            fate = self.planned.pop(0) if self.planned else self.down
            if isinstance(fate, Exception):
                raise fate
            if fate is not None:
                return fate if isinstance(fate, httpx.Response) else await fate(request)
        answer = await self.inner.handle_async_request(request)
        if self.lost and self.lost[0] == request.url.path:
            self.lost.pop(0)
            await answer.aread()
            raise LOST
        return answer


class Both:
    """The two services, and the line between them."""

    def __init__(self, owner, follower, line, clock, folder):
        self.owner, self.follower, self.line, self.clock, self.folder = owner, follower, line, clock, folder

    async def reserve(self, call_id="c1", credits=2):
        return await self.follower.reserve(call_id, RICH, credits, endpoint="/x", ttl_s=60)

    async def charge(self, call_id="c1"):
        return await self.follower.charge(call_id, RICH, 2, endpoint="/x", undelivered=True)

    async def queue(self):
        return await self.follower.file.read(
            lambda db: db.execute("SELECT call_id, state, reason FROM journal ORDER BY call_id").fetchall()
        )

    async def settled(self):
        """Wait until the journal is empty; releases that wait for a while are due."""
        self.clock.advance(1)
        await self.until(0)

    async def until(self, left):
        with anyio.fail_after(10):
            while len(await self.queue()) > left:
                self.follower.outbox.wake()
                await anyio.sleep(0.01)


@asynccontextmanager
async def both(folder, clock=None):
    clock = clock or ManualClock(START)
    async with open_ledger(folder / FILE, clock) as owner:
        await owner.mint(RICH, 10, cause="rich")
        line = Line(internal_app(owner, FOLLOWED, clock))
        async with open_ledger_client(FOLLOWS, folder / "b.sqlite3", clock, transport=line) as follower:
            yield Both(owner, follower, line, clock, folder)
        assert await faults(owner) == []


async def unavailable(awaitable):
    with pytest.raises(PaymentRequired) as caught:
        await awaitable
    assert caught.value.code == "billing_unavailable"
    return int(caught.value.headers["Retry-After"])


async def test_a_call_leaves_nothing_behind(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve()
        assert await s.queue() == [("c1", "reserving", None)]
        assert (await s.follower.settle("c1", no_charge=None, undelivered=True)).charged == 2
        assert await s.queue() == [("c1", "committed", None)]
        s.follower.delivered("c1")
        s.clock.advance(1)
        await s.settled()
        assert await s.owner.balance(RICH) == 8
        assert s.line.asked == [VALIDATE, COMMIT]


async def test_a_token_is_nowhere_in_the_followers_file(tmp_path):
    async with both(tmp_path) as s:
        await s.charge()
        dump = await s.follower.file.apart(lambda db: "\n".join(str(row) for row in db.iterdump()))
    assert "svc_live" not in dump
    assert RICH.removeprefix("svc_live_") not in dump


@pytest.mark.parametrize("path", [VALIDATE, COMMIT])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_message_that_is_lost_once_is_sent_again_and_charged_once(tmp_path, path, when):
    async with both(tmp_path) as s:
        if when == "after":
            s.line.lost = [path]
        elif path == VALIDATE:
            s.line.planned = [DOWN]
        else:
            s.line.planned = [None, httpx.Response(503)]
        assert (await s.charge()).charged == 2
        assert await s.owner.balance(RICH) == 8
        assert len(s.line.asked) == 3


@proves("ledger.contract")
@pytest.mark.parametrize("path", [VALIDATE, COMMIT])
async def test_a_step_that_takes_the_owner_longer_than_the_follower_waits_is_charged_all_the_same(tmp_path, path):
    async with both(tmp_path) as s:
        apply, is_taken, may_go_on = s.owner.apply_group, threading.Event(), threading.Event()

        def apply_late(*group):
            is_taken.set()
            assert may_go_on.wait(10)
            return apply(*group)

        async def leave(request):
            """Wait no longer when the owner writes."""
            s.owner.apply_group = apply_late
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(s.line.inner.handle_async_request, request)
                assert await anyio.to_thread.run_sync(is_taken.wait, 10)
                tasks.cancel_scope.cancel()
            s.owner.apply_group = apply
            may_go_on.set()
            raise LOST

        s.line.planned = [leave] if path == VALIDATE else [None, leave]
        assert (await s.charge()).charged == 2
        assert is_taken.is_set()
        assert await s.owner.balance(RICH) == 8
        assert len(s.line.asked) == 3


async def test_a_charge_of_which_no_reply_comes_is_taken_back(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve()
        s.line.lost = [COMMIT, COMMIT]
        assert await unavailable(s.follower.settle("c1", no_charge=None)) == 5
        await s.settled()
        assert await s.owner.balance(RICH) == 10
        again = await s.follower.settle("c1", no_charge=None)
        assert (again.charged, again.state, again.reason) == (0, "reversed", "circuit_breaker")


async def test_a_release_that_is_not_acknowledged_is_sent_until_it_is(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve()
        s.line.planned = [DOWN, DOWN]
        await unavailable(s.follower.settle("c1", no_charge="stale_data"))
        assert await s.queue() == [("c1", "releasing", "stale_data")]
        s.clock.advance(5)
        await s.settled()
        (settled,) = await s.owner.file.read(lambda db: db.execute("SELECT state, reason FROM reservation").fetchall())
        assert settled == ("voided", "stale_data")


async def test_a_reservation_of_which_no_reply_comes_is_released(tmp_path):
    async with both(tmp_path) as s:
        s.line.lost = [VALIDATE, VALIDATE]
        await unavailable(s.reserve())
        await s.settled()
        assert (await s.owner.balance(RICH), await s.owner.holds()) == (10, [])


async def test_what_the_owner_never_heard_of_is_released_by_its_saying_so(tmp_path):
    async with both(tmp_path) as s:
        s.line.planned = [DOWN, DOWN]
        await unavailable(s.reserve())
        await s.settled()
        for reason in (None, "5xx"):
            with pytest.raises(UnknownCall):
                await s.follower.settle("c1", no_charge=reason)
        assert await s.queue() == []


@pytest.mark.parametrize("step", ["reserve", "settle"])
async def test_who_hangs_up_is_not_charged(tmp_path, step):
    async with both(tmp_path) as s:
        begun = anyio.Event()

        async def never(request):
            begun.set()
            await anyio.sleep_forever()

        if step == "settle":
            await s.reserve()
        s.line.planned = [never]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(s.reserve if step == "reserve" else lambda: s.follower.settle("c1", no_charge=None))
            await begun.wait()
            tasks.cancel_scope.cancel()
        await s.settled()
        assert (await s.owner.balance(RICH), await s.owner.holds()) == (10, [])


@proves("charge.delivery")
async def test_after_a_crash_what_was_on_the_way_is_released(tmp_path, caplog):
    async with both(tmp_path) as s:
        await s.reserve("c1")
        await s.charge("c2")
        await s.charge("c3")
        s.follower.delivered("c3")
        assert await s.owner.balance(RICH) == 4
        s.clock.advance(1)
        await s.until(2)
        s.follower.deliveries.under_way.clear()  # an orderly stop would strike c2
    async with both(tmp_path) as s:
        await s.settled()
        assert await s.owner.balance(RICH) == 8
    assert "calls died with the process before" in caplog.text


async def test_an_orderly_stop_leaves_charges_alone(tmp_path):
    async with both(tmp_path) as s:
        await s.charge("c1")
    async with both(tmp_path) as s:
        assert await s.queue() == []
        assert await s.owner.balance(RICH) == 8


async def test_an_answer_of_which_nobody_says_that_it_was_sent_is_never_taken_as_delivered(tmp_path):
    async with both(tmp_path) as s:
        await s.charge()
        s.follower.delivered("never heard of")
        s.clock.advance(86_400)
        assert await s.queue() == [("c1", "committed", None)]


async def test_a_charge_that_needs_no_delivery_leaves_nothing_behind(tmp_path):
    async with both(tmp_path) as s:
        await s.follower.charge("c1", RICH, 2, endpoint="/x")
        assert await s.queue() == []


async def test_a_call_that_is_to_be_released_cannot_be_charged_any_more(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve()
        await s.follower.journal.release("c1", "cancelled", wait_s=60)
        settled = await s.follower.settle("c1", no_charge=None)
        assert (settled.charged, settled.state) == (0, "voided")
        assert await s.queue() == []


async def test_another_calls_name_is_not_taken(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve()
        with pytest.raises(CallReused):
            await s.reserve(credits=3)
        assert await s.queue() == [("c1", "reserving", None)]


async def test_a_name_used_again_by_mistake_gives_nothing_back(tmp_path):
    async with both(tmp_path) as s:
        await s.charge()
        await s.follower.deliveries.finish_all()
        with pytest.raises(CallReused):
            await s.reserve(credits=3)
        assert await s.queue() == []


async def test_a_refused_call_leaves_nothing_behind(tmp_path):
    async with both(tmp_path) as s:
        with pytest.raises(PaymentRequired) as caught:
            await s.reserve(credits=11)
        assert caught.value.extra == {"required": 11, "credits_remaining": 10}
        assert await s.queue() == []


async def test_many_at_once_spend_exactly_what_there_is(tmp_path):
    async with both(tmp_path) as s:
        charged, refused = [], []

        async def one(number):
            try:
                charged.append((await s.charge(f"c{number}")).charged)
            except PaymentRequired as refusal:
                refused.append(refusal.code)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)
        assert (charged, set(refused)) == ([2] * 5, {"insufficient_credits"})
        assert await s.owner.balance(RICH) == 0


async def test_who_has_a_token_is_asked_once_in_a_while(tmp_path):
    async with both(tmp_path) as s:
        assert await s.follower.knows(RICH)
        assert not await s.follower.knows(token(9))
        asked = len(s.line.asked)
        for _ in range(3):
            assert await s.follower.knows(RICH)
            assert not await s.follower.knows(token(9))
            assert not await s.follower.knows("nonsense")
        assert len(s.line.asked) == asked
        s.clock.advance(6)
        s.line.down = DOWN
        await unavailable(s.follower.knows(RICH))
        assert len(s.line.asked) == asked + 1


# --- while the owner is away ---


async def test_while_the_owner_is_away_it_is_left_alone_and_found_again(tmp_path, caplog):
    async with both(tmp_path) as s:
        s.line.down = DOWN
        waits = [await unavailable(s.charge(f"c{number}")) for number in range(8)]
        assert waits[:2] == [5, 5]
        assert 24 <= waits[-1] <= 36
        assert len(s.line.asked) == 5
        assert await unavailable(s.follower.balance(RICH)) > 5
        assert (s.follower.health.state, s.follower.health.opened) == ("open", 1)
        s.clock.advance(37)
        s.line.down = None
        with anyio.fail_after(10):
            while s.follower.health.state != "closed":  # noqa: ASYNC110
                await anyio.sleep(0.02)
        assert (await s.charge("c9")).charged == 2
        s.follower.delivered("c9")
        await s.settled()
        assert await s.owner.balance(RICH) == 8
    away = [r for r in caplog.records if r.getMessage() == "the ledger is away"]
    assert len(away) == 1


async def test_while_it_is_left_alone_calls_write_nothing_down(tmp_path):
    async with both(tmp_path) as s:
        s.line.down = DOWN
        for number in range(20):
            await unavailable(s.charge(f"c{number}"))
        assert len(await s.queue()) == 3  # those that were tried


async def test_what_is_to_be_settled_meanwhile_waits_in_the_outbox(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve("c1")
        await s.reserve("c2")
        s.line.down = DOWN
        for _ in range(3):
            await unavailable(s.follower.balance(RICH))
        asked = len(s.line.asked)
        await unavailable(s.follower.settle("c1", no_charge=None))
        await unavailable(s.follower.settle("c2", no_charge="5xx"))
        assert len(s.line.asked) == asked
        assert [state for _, state, _ in await s.queue()] == ["releasing"] * 2
        s.line.down = None
        s.clock.advance(40)
        await s.settled()
        assert await s.owner.balance(RICH) == 10


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(200, content=b"not JSON"),
        httpx.Response(200, json={"ok": True, "state": "of grace"}),
        httpx.Response(200, json={"ok": False}),
        httpx.Response(200, content=b"[]"),
        httpx.Response(302, headers={"location": "http://elsewhere.test/"}),
        httpx.Response(200, content=b" " * (MOST_BYTES + 1)),
    ],
    ids=lambda answer: f"{answer.status_code} {answer.content[:20]!r}",
)
async def test_nonsense_is_as_good_as_silence(tmp_path, answer):
    async with both(tmp_path) as s:
        await s.reserve()
        s.line.planned = [answer, answer]
        await unavailable(s.follower.settle("c1", no_charge=None))
        assert s.follower.owner.breaker._failures == 2
        await s.settled()
        assert await s.owner.balance(RICH) == 10


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_keys_that_do_not_fit_are_told_of_and_fill_no_disk(tmp_path, status, caplog):
    async with both(tmp_path) as s:
        s.line.down = httpx.Response(status, json={"ok": False, "error": "x"})
        for number in range(10):
            await unavailable(s.charge(f"c{number}"))
        assert await s.queue() == []
        assert s.follower.health.state == "closed"
        assert len(s.line.asked) == 10
    assert f"rejects our requests: HTTP {status}" in caplog.text


@proves("sister.journal")
async def test_a_journal_that_cannot_be_written_stops_sales(tmp_path, caplog):
    async with both(tmp_path) as s:
        with caplog.at_level(logging.CRITICAL):
            await s.follower.file.alone(lambda db: db.execute("ALTER TABLE journal RENAME TO lost") and None)
            await unavailable(s.charge())
            assert s.line.asked == []
            await s.follower.file.alone(lambda db: db.execute("ALTER TABLE lost RENAME TO journal") and None)
        assert (await s.charge()).charged == 2


async def test_a_charge_that_cannot_be_noted_is_one_all_the_same(tmp_path, caplog):
    async with both(tmp_path) as s:
        await s.reserve()
        trigger = """CREATE TEMP TRIGGER full BEFORE UPDATE ON journal WHEN NEW.state='committed'
          BEGIN SELECT RAISE(ABORT, 'disk full'); END"""
        await s.follower.file.alone(lambda db: db.execute(trigger) and None)
        with caplog.at_level(logging.CRITICAL):
            assert (await s.follower.settle("c1", no_charge=None)).charged == 2
    async with both(tmp_path) as s:
        assert await s.owner.balance(RICH) == 8


async def test_what_cannot_be_struck_from_the_journal_is_struck_later(tmp_path, caplog):
    async with both(tmp_path) as s:
        await s.charge()
        trigger = "CREATE TEMP TRIGGER full BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        await s.follower.file.alone(lambda db: db.execute(trigger) and None)
        with caplog.at_level(logging.CRITICAL):
            await s.follower.deliveries.finish_all()
        assert await s.queue() == [("c1", "committed", None)]
        await s.follower.file.alone(lambda db: db.execute("DROP TRIGGER full") and None)
    async with both(tmp_path) as s:
        assert await s.queue() == []


async def test_a_release_that_fails_again_waits_longer(tmp_path):
    async with both(tmp_path) as s:
        await s.reserve()
        s.line.planned = [DOWN] * 4
        await unavailable(s.follower.settle("c1", no_charge="5xx"))
        s.clock.advance(5)
        s.follower.outbox.wake()
        with anyio.fail_after(10):
            while s.line.planned:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        tries = "SELECT tries FROM journal"
        with anyio.fail_after(10):
            while await s.follower.file.read(lambda db: db.execute(tries).fetchall()) == [(0,)]:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        await s.settled()
        assert await s.owner.balance(RICH) == 10


def test_a_time_that_is_none_is_the_beginning():
    assert (seconds("1970-01-01T00:00:01.500Z"), seconds("soon"), seconds(None)) == (1.5, 0.0, 0.0)


async def test_without_an_address_there_is_nobody_to_follow(tmp_path):
    with pytest.raises(ValueError, match="set url, key_id and secret"):
        async with open_ledger_client(Settings(), tmp_path / "b.sqlite3"):
            pass


async def test_a_release_another_service_owns_is_dropped_and_told_of(tmp_path, caplog):
    async with both(tmp_path) as s:
        s.line.planned = [httpx.Response(200, json={"ok": False, "reason": "reservation_mismatch"})]
        with pytest.raises(UnknownCall):
            await s.follower.settle("c1", no_charge="5xx")
        assert await s.queue() == []
    assert "a release was refused: reservation_mismatch" in caplog.text


async def test_a_request_ends_in_time(tmp_path):
    async def slow(request):
        await anyio.sleep_forever()

    remote = HttpClient(OWNER_URL, transport=httpx.MockTransport(slow))
    with pytest.raises(Unreachable, match="TimeoutError"):
        await remote.ask("GET", "/", headers={}, within_s=0.05)
    await remote.aclose()


# --- allowances ---


@proves("allowance.unsupported")
async def test_an_owner_without_allowances_is_not_supported_and_said_so(tmp_path):
    async with both(tmp_path) as s:
        s.line.planned = [httpx.Response(404, json={"ok": False, "error": "not_found"})] * 2
        with pytest.raises(NotSupported):
            await s.follower.list_allowances(RICH)
        assert await s.follower.keeps_allowances() is False
        assert await s.follower.keeps_allowances() is True


async def test_an_owner_that_is_away_refuses_allowances_and_is_taken_to_have_them(tmp_path):
    async with both(tmp_path) as s:
        s.line.down = DOWN
        await unavailable(s.follower.list_allowances(RICH))
        assert await s.follower.keeps_allowances() is True


@proves("allowance.followed")
async def test_a_crossed_cap_is_told_by_the_owner(tmp_path):
    async with both(tmp_path) as s:
        child = token(77)
        await s.follower.create_allowance(RICH, token_hash(child).hex(), AllowanceTerms("x", 1))
        with pytest.raises(InsufficientCredits, match="spent 0 of 1") as caught:
            await s.follower.reserve("c1", child, 2, endpoint="/x", ttl_s=60)
        assert caught.value.extra == {"required": 2, "credits_remaining": 1, "cap": "credits"}
        account = await s.follower.account(child)
        assert (account.credits, account.payer) == (1, token_hash(RICH).hex())


HOSTILE_CHARGES = [{"credits_charged": 999_999}, {"credits_charged": -7}, {"credits_charged": 1}, {"balance_after": -1}]


@pytest.mark.parametrize("said", HOSTILE_CHARGES, ids=str)
async def test_a_charge_that_no_price_of_ours_allows_is_refused_and_given_back(tmp_path, said, caplog):
    async with both(tmp_path) as b:

        async def mistake(request):
            answer = await b.line.inner.handle_async_request(request)
            content = msgspec.json.encode(msgspec.json.decode(await answer.aread()) | said)
            return signed_by_owner(request, content)

        await b.reserve()
        b.line.planned = [mistake]
        await unavailable(b.follower.settle("c1", no_charge=None))
        await b.settled()
        assert await b.owner.balance(RICH) == 10
    assert "charged another price" in caplog.text


def signed_by_owner(request, content):
    """A reply to a request, with the signature of the owner."""
    secret, request_mac = FOLLOWS.secret.get_secret_value(), signature(request.headers["authorization"]).mac
    return httpx.Response(200, content=content, headers={REPLY_SIGNATURE: reply_mac(secret, request_mac, 200, content)})


async def forget(request):
    """An owner that knows no reservation."""
    return signed_by_owner(request, b'{"ok": false, "reason": "reservation_not_found"}')


async def test_a_charge_at_once_of_a_call_that_the_owner_does_not_know_is_unavailable(tmp_path):
    async with both(tmp_path) as b:
        b.line.planned = [None, forget]
        await unavailable(b.charge())
