"""Top-ups of a followed ledger go to its owner."""

import pytest

from rest_bridge.x402 import forward_topups
from tests.arranged import FACTS, client_of
from toolserver.core.http import HttpAnswer
from toolserver.errors import BillingUnavailable
from toolserver.money.purchases.credit_sales import NoCreditSales
from toolserver.money.purchases.remote import RemotePurchases
from toolserver.money.x402.wire import TOPUP_PATH


class Owner(RemotePurchases):
    """An owner that answers as a test says."""

    def __init__(self, answer):
        self._answer = answer

    async def pass_on(self, method, path, body, headers, within_s):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def ask(answer):
    mounted = forward_topups(Owner(answer), FACTS)
    assert list(mounted) == [TOPUP_PATH]
    async with client_of(mounted[TOPUP_PATH]) as http:
        return await http.post(TOPUP_PATH, json={"amount_usd": 5})


async def test_the_owners_answer_comes_back_as_it_is():
    answer = await ask(HttpAnswer(402, {"content-type": "application/json"}, b'{"a":1}'))
    assert (answer.status_code, answer.content) == (402, b'{"a":1}')


async def test_a_refusal_of_our_own_is_a_problem():
    answer = await ask(BillingUnavailable("away"))
    assert answer.status_code == 402
    assert answer.json()["error"] == "billing_unavailable"


def test_nobody_else_has_such_a_path():
    with pytest.raises(AssertionError):
        forward_topups(NoCreditSales(), FACTS)
