"""Links by which people pay for calls in chats: what they keep, who can use them, and how long a call waits for one."""

from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from tests.calls.toy import REGISTRY
from toolserver.calls import payment_links
from toolserver.calls.payment_links import LIFE_S, LOOK_S, WAIT_S, PaymentLinks, TextSeal
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.core.waiting_room import WaitLimits
from toolserver.errors import AllowanceConflict, InvalidToken, NotFound, PayerProofRequired, RevokedToken
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.receipts.keys import KeyRing, ensure_keys, rotate_keys, write
from toolserver.registry.registry import Registry

PAYER, POOR = "svc_live_" + "1" * 64, "svc_live_" + "2" * 64
OPERATION = next(operation for operation in REGISTRY if operation.credits)


class CountingLedger(MemoryLedger):
    """A ledger that counts how often it was asked about a token."""

    asked = 0

    async def knows(self, token: str) -> bool:
        self.asked += 1
        return await super().knows(token)


class Room:
    """The links of one service, its ledger, clock and keys."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(datetime(2027, 1, 15, tzinfo=UTC))
        self.path = folder / "receipts.json"
        self.ledger = CountingLedger(self.clock)
        self.ledger.fund(PAYER, 100)
        self.ledger.fund(POOR, 1)
        self.links = self.open()

    def open(self, registry: Registry = REGISTRY) -> PaymentLinks:
        return PaymentLinks(self.ledger, KeyRing(self.path, self.clock), registry, self.clock)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_texts_are_sealed_for_one_purpose_and_never_the_same_twice(room: Room) -> None:
    ring = KeyRing(room.path, room.clock)
    one, other = TextSeal(ring, "one"), TextSeal(ring, "other")
    assert (one.unseal(one.seal("a text")), other.unseal(one.seal("a text"))) == ("a text", None)
    assert one.seal("a text") != one.seal("a text")


@pytest.mark.parametrize("text", ["", "A", "A" * 53, "A" * 54, "A" * 55, "é", "a b", "=="])
def test_what_is_no_sealed_text_is_not_opened(room: Room, text: str) -> None:
    assert TextSeal(KeyRing(room.path, room.clock), "one").unseal(text) is None


def test_a_new_key_seals_and_the_former_one_still_opens(room: Room) -> None:
    ring = KeyRing(room.path, room.clock)
    before = TextSeal(ring, "one").seal("a text")
    write(room.path, rotate_keys(ensure_keys(room.path), room.clock.time(), after_s=10))
    room.clock.advance(20)
    after = TextSeal(ring, "one").seal("a text")
    assert TextSeal(ring, "one").unseal(before) == "a text"
    only_new = room.path.with_name("new.json")
    write(only_new, [ring.current()])
    alone = TextSeal(KeyRing(only_new, room.clock), "one")
    assert (alone.unseal(before), alone.unseal(after)) == (None, "a text")


def test_a_link_has_a_code_without_letters_that_look_alike(room: Room) -> None:
    codes = {room.links.make(OPERATION, None).link.code for _ in range(50)}
    assert len(codes) > 40
    assert all(len(code) == 4 and not set(code) & set("01ILO") for code in codes)


def test_a_link_ends_after_half_an_hour(room: Room) -> None:
    made = room.links.make(OPERATION, None)
    room.clock.advance(LIFE_S - 1)
    assert room.links.read(made.text) == made.link
    room.clock.advance(1)
    with pytest.raises(NotFound, match="expired"):
        room.links.read(made.text)


async def test_a_chat_may_spend_the_price_of_its_call_on_its_tool_and_nothing_else(room: Room) -> None:
    made = room.links.make(OPERATION, None)
    assert made.secret is not None
    await room.links.pay_call(made.link, PAYER)
    (allowance,) = await room.ledger.list_allowances(PAYER)
    assert (allowance.credits, allowance.paths) == (OPERATION.credits, {OPERATION.path})
    assert (allowance.hash, allowance.parent) == (token_hash(made.secret).hex(), token_hash(PAYER).hex())
    room.clock.advance(LIFE_S)
    with pytest.raises(RevokedToken):
        await room.ledger.balance(made.secret)


async def test_an_allowance_pays_for_no_chat_and_proves_the_account_that_it_spends_from(room: Room) -> None:
    made = room.links.make(OPERATION, None)
    assert made.secret is not None
    await room.links.pay_call(made.link, PAYER)
    with pytest.raises(AllowanceConflict):
        await room.links.pay_call(room.links.make(OPERATION, None).link, made.secret)
    await room.links.prove(room.links.make(OPERATION, token_hash(PAYER).hex()).link, made.secret)


async def test_a_link_of_one_kind_does_nothing_of_the_other(room: Room) -> None:
    of_call, of_account = room.links.make(OPERATION, None), room.links.make(OPERATION, token_hash(PAYER).hex())
    with pytest.raises(PayerProofRequired):
        await room.links.prove(of_call.link, PAYER)
    with pytest.raises(PayerProofRequired):
        await room.links.pay_call(of_account.link, PAYER)


async def test_a_tool_that_is_gone_is_paid_by_nobody(room: Room) -> None:
    made = room.links.make(OPERATION, None)
    with pytest.raises(NotFound, match="no longer offered"):
        await room.open(Registry([])).pay_call(made.link, PAYER)


async def test_a_call_looks_at_the_ledger_twice_a_second_and_no_longer_than_it_says(room: Room) -> None:
    made = room.links.make(OPERATION, None)
    assert made.secret is not None
    before = room.clock.monotonic()
    assert not await room.links.wait_until_paid(made.link, made.secret)
    assert room.clock.monotonic() - before == WAIT_S
    assert room.ledger.asked == WAIT_S / LOOK_S + 1


CLIENT = "192.0.2.1"


@pytest.mark.parametrize("limits", [WaitLimits(9, 1, 9), WaitLimits(9, 9, 1)], ids=["of a client", "of a network"])
async def test_where_too_many_calls_wait_a_further_one_looks_once(
    room: Room, monkeypatch: pytest.MonkeyPatch, limits: WaitLimits
) -> None:
    made, waits = room.links.make(OPERATION, None), anyio.Event()
    assert made.secret is not None

    async def sleep(seconds: float) -> None:
        waits.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(payment_links, "PAYMENT_WAITS", limits)
    monkeypatch.setattr(room.clock, "sleep", sleep)
    links = room.open()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(links.wait_until_paid, made.link, made.secret, CLIENT)
        await waits.wait()
        asked = room.ledger.asked
        assert not await links.wait_until_paid(made.link, made.secret, CLIENT)
        assert room.ledger.asked == asked + 1
        await links.pay_call(made.link, PAYER)
        assert await links.wait_until_paid(made.link, made.secret, CLIENT)
        assert links.room.refused == {"share": 1}
        tasks.cancel_scope.cancel()


async def test_an_account_waits_for_enough_credits_and_an_unknown_token_for_nothing(room: Room) -> None:
    link = room.links.make(OPERATION, token_hash(POOR).hex()).link
    assert not await room.links.wait_until_paid(link, POOR)
    room.ledger.fund(POOR, OPERATION.credits - 1)
    assert await room.links.wait_until_paid(link, POOR)
    with pytest.raises(InvalidToken):
        await room.links.wait_until_paid(link, "svc_live_" + "3" * 64)
