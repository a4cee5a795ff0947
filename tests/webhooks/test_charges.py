from types import SimpleNamespace

import pytest

from tests.calls.parts import RICH
from tests.calls.toy import premium_report
from tests.webhooks.shop import fire, subscription
from toolserver.core.caller import token_hash
from toolserver.errors import BillingUnavailable, InsufficientCredits
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.registry.registry import operation_of
from toolserver.webhooks.delivery import WebhookCharges, WebhookMessage

REPORT = operation_of(premium_report)
KEY = token_hash(RICH).hex()


class Receipts:
    """Remembers what was asked of it."""

    def __init__(self):
        self.sales, self.uncharged = [], []

    async def sign(self, sale):
        self.sales.append(sale)
        return "rcpt_1", "jws"

    async def record_released(self, reason, owner, endpoint, credits):
        self.uncharged.append((reason, owner, endpoint, credits))


@pytest.fixture
async def parts():
    ledger, receipts = MemoryLedger(), Receipts()
    ledger.fund(RICH, 2)
    owned = subscription(owner=KEY, account=(await ledger.standing(RICH)).ref.ref)
    return SimpleNamespace(
        ledger=ledger, receipts=receipts, charges=WebhookCharges(ledger, receipts), subscription=owned
    )


async def test_a_fire_is_charged_once_however_often_it_is_asked_for(parts):
    for _ in range(3):
        held = await parts.charges.reserve(fire(), parts.subscription, REPORT)
        assert (held.credits, held.state) == (1, "open")
    message = WebhookMessage(fire(captured_at=1_800_000_000_500), parts.subscription, b"body")
    for _ in range(3):
        settled = await parts.charges.charge(message, REPORT)
        assert (settled.charged, settled.remaining) == (1, 1)
    sale = parts.receipts.sales[0]
    assert (sale.kind, sale.cost, sale.charged, sale.endpoint) == ("webhook", 1, 1, "/api/pro/report")
    assert (sale.owner, sale.body.size, sale.captured_at) == (KEY, 4, 1_800_000_000.5)


async def test_a_release_gives_the_credits_back_and_is_counted_in_public(parts):
    await parts.charges.reserve(fire(), parts.subscription, REPORT)
    await parts.charges.release(fire(), parts.subscription, REPORT, "delivery_failed")
    assert await parts.ledger.balance(RICH) == 2
    assert parts.receipts.uncharged == [("delivery_failed", KEY, "/api/pro/report", 1)]


async def test_nothing_reserved_is_nothing_to_give_back(parts):
    await parts.charges.drop(fire(), parts.subscription, "/api/pro/report", "delivery_failed")
    assert await parts.ledger.balance(RICH) == 2


class AwayLedger(MemoryLedger):
    """A ledger that settles nothing at the moment."""

    async def settle(self, *_, **__):
        raise BillingUnavailable("away")


async def test_a_ledger_that_is_away_leaves_the_reservation_to_expire_and_no_line_in_the_log(parts):
    charges = WebhookCharges(AwayLedger(), parts.receipts)
    await charges.drop(fire(), parts.subscription, "/api/pro/report", "delivery_failed")
    assert parts.receipts.uncharged == []


async def test_who_can_pay(parts):
    assert await parts.charges.can_pay(parts.subscription, 2)
    assert not await parts.charges.can_pay(parts.subscription, 3)
    for number in (1, 2):
        await parts.charges.reserve(fire(number), parts.subscription, REPORT)
    with pytest.raises(InsufficientCredits):
        await parts.charges.reserve(fire(3), parts.subscription, REPORT)
