"""Charge and receipt in one transaction: both or neither, for each caller of a group, and nothing for who is gone."""

from contextlib import asynccontextmanager

import anyio
import pytest

from tests.billing.ledgers import token
from tests.engine.parts import START
from toolserver import ids
from toolserver.access import token_hash
from toolserver.billing import keys
from toolserver.billing.counter import Counter
from toolserver.billing.evidence import Evidence
from toolserver.billing.receipts import Body, Sale, receipt_id
from toolserver.billing.sqlite import FILE, opened_ledger
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired

RICH, POOR = token(1), token(2)


class Stand:
    """A counter, and how to buy at it."""

    def __init__(self, ledger, evidence, clock):
        self.ledger, self.evidence = ledger, evidence
        self.counter = Counter(ledger, evidence, clock)

    async def buy(self, call_id=None, *, who=RICH, sale=None):
        call_id = call_id or ids.call_id()

        def told(settled):
            owner = token_hash(who).hex()
            body = Body("0" * 64, 5)
            return Sale(call_id, owner, "/api/pro/x", "GET /x", 2, settled.charged, settled.remaining, body=body)

        return await self.counter.sell(call_id, who, 2, endpoint="/api/pro/x", sale=sale or told)

    async def receipts(self):
        return await self.ledger.file.read(lambda db: [row[0] for row in db.execute("SELECT id FROM receipt")])


@pytest.fixture
async def stand(tmp_path):
    async with open_stand(tmp_path) as stand:
        yield stand
        assert await stand.ledger.check() == []


@asynccontextmanager
async def open_stand(folder):
    clock = ManualClock(START)
    async with opened_ledger(folder / FILE, clock) as ledger:
        await ledger.mint(RICH, 100, cause="rich")
        await ledger.mint(POOR, 1, cause="poor")
        evidence = Evidence(ledger.file, folder, clock=clock, base_url="https://data.example", service="data.example")
        yield Stand(ledger, evidence, clock)


async def test_a_sale_is_a_charge_and_its_receipt(stand):
    call_id = ids.call_id()
    settled, signed = await stand.buy(call_id)
    assert (settled.charged, settled.remaining, signed.id) == (2, 98, receipt_id(call_id))
    verdict = await stand.evidence.verify(signed.jws)
    assert verdict["valid"]
    assert (verdict["core"]["credits_charged"], verdict["core"]["balance_after"]) == (2, 98)


async def test_the_same_call_again_is_the_same_sale(stand):
    call_id = ids.call_id()
    first, again = await stand.buy(call_id), await stand.buy(call_id)
    assert again[1] == first[1]
    assert await stand.ledger.balance(RICH) == 98


async def test_who_cannot_pay_does_not_disturb_who_can(stand):
    told = []

    async def one(who):
        try:
            told.append((await stand.buy(who=who))[0].charged)
        except PaymentRequired as refusal:
            told.append(refusal.code)

    async with anyio.create_task_group() as tasks:
        for who in (RICH, POOR, RICH, token(3)):
            tasks.start_soon(one, who)
    assert sorted(map(str, told)) == ["2", "2", "insufficient_credits", "invalid_token"]
    assert len(await stand.receipts()) == 2


async def test_without_a_receipt_there_is_no_charge_and_others_of_the_group_go_on(stand):
    failures = []

    def broken(settled):
        raise RuntimeError("no receipt")

    async def one():
        try:
            await stand.buy(sale=broken)
        except RuntimeError as failure:
            failures.append(str(failure))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(stand.buy)
    assert failures == ["no receipt"]
    assert await stand.ledger.balance(RICH) == 98
    assert len(await stand.receipts()) == 1


async def test_who_is_gone_before_the_answer_gets_the_credits_back_and_leaves_no_receipt(stand):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stand.buy)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await stand.ledger.sweep()  # stands in the queue behind what was taken back
    assert await stand.ledger.balance(RICH) == 100
    assert await stand.receipts() == []


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
    (key,) = keys.read(path)
    keys.write(path, keys.revoked((key,), key.kid, START.timestamp() + 60))
    stand.evidence._ring._look_at = 0.0
    shown = await stand.evidence.receipt(signed.id, RICH)
    assert "signature" not in shown["receipt"]
    assert shown["jws"] == signed.jws
