"""Charge and receipt in one transaction: both or neither, for each caller of a group, and nothing for who is gone."""

import anyio
import pytest

from tests.calls.charging import POOR, RICH, open_stand
from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from toolserver.calls.charge_store import ReceiptedCharges
from toolserver.clock import ManualClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.errors import PaymentRequired
from toolserver.money.receipts import keys
from toolserver.money.receipts.sign import receipt_id


@pytest.fixture(params=["memory", "sqlite"])
async def stand(request, tmp_path):
    async with open_stand(tmp_path, request.param) as stand:
        yield stand
        assert await stand.ledger.check() == []


async def test_a_sale_is_a_charge_and_its_receipt(stand):
    call_id = new_call_id()
    settled, signed = await stand.buy(call_id)
    assert (settled.charged, settled.remaining, signed.id) == (2, 98, receipt_id(call_id))
    verdict = await stand.evidence.verify(signed.jws)
    assert verdict["valid"]
    assert (verdict["core"]["credits_charged"], verdict["core"]["balance_after"]) == (2, 98)


async def test_the_same_call_again_is_the_same_sale(stand):
    call_id = new_call_id()
    first, again = await stand.buy(call_id), await stand.buy(call_id)
    assert again[1] == first[1]
    assert await stand.ledger.balance(RICH) == 98


async def test_who_cannot_pay_does_not_disturb_who_can(stand):
    told, signed = [], []

    async def one(who):
        try:
            settled, receipt = await stand.buy(who=who)
            told.append(settled.charged)
            signed.append(receipt.id)
        except PaymentRequired as refusal:
            told.append(refusal.code)

    async with anyio.create_task_group() as tasks:
        for who in (RICH, POOR, RICH, token(3)):
            tasks.start_soon(one, who)
    assert sorted(map(str, told)) == ["2", "2", "insufficient_credits", "invalid_token"]
    assert len(set(signed)) == 2


async def test_who_is_gone_before_the_answer_gets_the_credits_back_and_leaves_no_receipt(tmp_path):
    call_id = new_call_id()
    async with open_stand(tmp_path) as stand:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stand.buy, call_id)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await stand.ledger.sweep()  # stands in the queue behind the withdrawal
        assert await stand.ledger.balance(RICH) == 100
        assert not await stand.has_receipt(call_id)


async def test_when_the_books_are_closed_nothing_is_sold(tmp_path):
    async with open_stand(tmp_path) as stand:
        pass
    with pytest.raises(PaymentRequired) as refused:
        await stand.buy()
    assert refused.value.code == "billing_unavailable"


async def test_a_receipt_is_shown_with_a_signature_of_its_own_while_its_key_can_sign(stand, tmp_path):
    _, signed = await stand.buy()
    shown = await stand.evidence.receipt(signed.id, RICH)
    assert (await stand.evidence.verify(shown["receipt"]))["valid"]

    path = tmp_path / keys.RECEIPT_KEYS
    (key,) = keys.read_keys(path)
    keys.write(path, keys.revoke_key((key,), key.kid, START.timestamp() + 60))
    stand.clock.advance(keys.LOOK_S)
    shown = await stand.evidence.receipt(signed.id, RICH)
    assert "signature" not in shown["receipt"]
    assert shown["jws"] == signed.jws


class EndlessStore:
    """A store that never answers, and remembers what is withdrawn."""

    def __init__(self):
        self.begun, self.withdrawn = anyio.Event(), []

    async def charge(self, operation):
        self.begun.set()
        await anyio.sleep_forever()

    def withdraw(self, call_id, key, name=None):
        self.withdrawn.append((call_id, key))


async def test_the_charge_of_a_caller_who_hangs_up_meanwhile_is_withdrawn():
    store = EndlessStore()
    charges = ReceiptedCharges(store, None, ManualClock(START))

    async def charge():
        await charges.charge("call_1", RICH, 2, endpoint="/api/pro/x", sale=lambda settled: None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(charge)
        await store.begun.wait()
        tasks.cancel_scope.cancel()
    assert store.withdrawn == [("call_1", token_hash(RICH).hex())]
