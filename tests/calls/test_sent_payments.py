"""Payments that come with a call: who sells for them, and what the pipeline adds and leaves out.

The seller here takes tickets. The one of the product is `toolserver.money.x402.exact`, which the room of money tests.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.calls.parts import Engine, engine
from tests.calls.toy import FIRST, REGISTRY, SECOND
from toolserver.app import make_limits
from toolserver.calls.paid_call import CallMoney, PaidCallResult, PaymentSale
from toolserver.calls.pipeline import Pipeline
from toolserver.core.caller import Caller
from toolserver.errors import InvalidArguments, MissingToken, RateLimited
from toolserver.settings import LimitSettings

CALLER = Caller("192.0.2.1", payment="ticket 1", limited=False)


@dataclass
class TicketSeller:
    """Sells an answer for a ticket, and tells what it was asked."""

    engine: Engine
    sold: list[tuple[Any, ...]] = field(default_factory=list)

    def add_offer(self, operation, rejected):
        rejected.headers["ticket-office"] = operation.name

    async def sell(self, operation, arguments, sent, caller):
        self.sold.append((operation.name, arguments, sent, caller.payment))
        rendered = await self.engine.answers.compose(operation, arguments)
        return PaymentSale(PaidCallResult(rendered, operation.credits, None), {"ticket": caller.payment})

    async def find_settlement(self, text):
        return {"ticket": text}


def selling(e: Engine, limits: LimitSettings | None = None) -> tuple[Pipeline, TicketSeller]:
    """The pipeline of a service that takes tickets, and its seller."""
    e.internet.serves(FIRST, {"value": 3})
    e.internet.serves(SECOND, {"value": 4})
    seller = TicketSeller(e)
    money = e.service.money
    return (
        Pipeline(
            e.answers,
            make_limits(limits or LimitSettings(enabled=False), e.clock, memory=None),
            CallMoney(ledger=money.ledger, idempotency=money.idempotency, x402=seller),
            e.service.visitors.tokens,
            e.pipeline.metrics,
            e.pipeline.usage,
        ),
        seller,
    )


async def test_a_call_with_a_payment_is_sold_for_it_and_no_credits_are_held():
    async with engine(REGISTRY) as e:
        pipeline, seller = selling(e)
        outcome = await pipeline.call(REGISTRY["premium_report"], {"history": "30d"}, CALLER)

    ((name, arguments, sent, payment),) = seller.sold
    assert (name, arguments.history, sent, payment) == ("premium_report", "30d", {"history": "30d"}, "ticket 1")
    assert (outcome.settlement, outcome.sale.charged, outcome.sale.remaining) == ({"ticket": "ticket 1"}, 2, None)


async def test_arguments_are_checked_before_a_payment_is_taken():
    async with engine(REGISTRY) as e:
        pipeline, seller = selling(e)
        with pytest.raises(InvalidArguments) as refused:
            await pipeline.call(REGISTRY["premium_report"], {"history": "31d"}, CALLER)

    assert seller.sold == []
    assert "ticket-office" not in refused.value.headers


async def test_a_refusal_for_lack_of_payment_carries_an_offer():
    async with engine(REGISTRY) as e:
        pipeline, _ = selling(e)
        with pytest.raises(MissingToken) as refused:
            await pipeline.call(REGISTRY["premium_report"], {}, Caller("192.0.2.1", limited=False))

    assert refused.value.headers["ticket-office"] == "premium_report"


async def test_a_payment_with_a_free_call_is_not_taken():
    async with engine(REGISTRY) as e:
        pipeline, seller = selling(e)
        outcome = await pipeline.call(REGISTRY["number"], {}, CALLER)

    assert (seller.sold, outcome.settlement) == ([], None)


async def test_calls_with_payments_count_towards_the_limit_of_paid_calls_of_their_address():
    async with engine(REGISTRY) as e:
        pipeline, seller = selling(e, LimitSettings(premium_per_minute=1))
        await pipeline.call(REGISTRY["premium_report"], {}, Caller("192.0.2.1", payment="ticket 1"))
        with pytest.raises(RateLimited):
            await pipeline.call(REGISTRY["premium_report"], {}, Caller("192.0.2.1", payment="ticket 2"))
        await pipeline.call(REGISTRY["premium_report"], {}, Caller("192.0.2.9", payment="ticket 3"))

    assert [payment for *_, payment in seller.sold] == ["ticket 1", "ticket 3"]
