"""What a service that sells nothing answers."""

from decimal import Decimal

import pytest

from toolserver.errors import NotFound
from toolserver.money.purchases.credit_sales import Claim, NoCreditSales


@pytest.mark.parametrize("what", ["quote", "confirm", "balance"])
async def test_where_nothing_is_sold_everything_is_not_found(what):
    sales = NoCreditSales()
    given = {"quote": (Decimal(5),), "confirm": (Claim("", ""),), "balance": ("svc_live_" + "0" * 64,)}[what]
    with pytest.raises(NotFound, match="sells no credits"):
        await getattr(sales, what)(*given)


def test_a_claim_needs_no_proof_unless_it_is_asked_for():
    assert Claim("0x1", "memo") == ("0x1", "memo", None, None)
