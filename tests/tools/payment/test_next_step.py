"""The step after a purchase names a tool that is sold, and the low balance is counted at the highest price."""

from tools.payment.next_step import DEAREST_CREDITS, SPEND
from toolserver.registry.registry import Registry, Tier

SOLD = {operation.name: operation.credits for operation in Registry.load("tools") if operation.tier is Tier.PREMIUM}


def test_the_next_tool_is_one_that_is_sold():
    assert SPEND.tool in SOLD
    assert "Authorization: Bearer" in SPEND.how
    assert "argument `token`" in SPEND.how


def test_the_highest_price_is_that_of_the_price_list():
    assert max(SOLD.values()) == DEAREST_CREDITS
