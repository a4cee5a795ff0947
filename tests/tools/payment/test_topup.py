"""payment_topup by a plain transfer, as callers meet it: a quote for the token, then the claim, and what is refused."""

import pytest

from tests.money.purchases.parts import TX, paid
from tests.requirements import proves
from tests.tools.payment.test_tools import shop
from tools.payment.topup import payment_topup
from toolserver.core.caller import token_hash
from toolserver.errors import InvalidArguments, InvalidToken, MissingToken, NotFound, PaymentPending
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.registry.registry import Registry, operation_of

TOPUP = operation_of(payment_topup)
OWNER, CHILD = f"svc_live_{1:064x}", f"svc_live_{2:064x}"


async def topup(s, token=OWNER, **arguments):
    return await s.call(TOPUP.name, arguments, token=token)


@proves("purchase.topup")
async def test_a_token_gets_a_quote_pays_it_and_claims_the_credits(tmp_path):
    async with shop(tmp_path, registry=Registry([TOPUP])) as s:
        await s.desk.ledger.mint(OWNER, 10, cause="owner")
        offered = await topup(s, amount_usd=5)
        assert (offered["token"], offered["credits"], offered["transaction"]) == (OWNER, 250, None)
        to_pay = offered["transfer"]
        assert to_pay["amount_atomic"] == 5_000_000
        assert to_pay["wallet"] in offered["next"]["how"]
        claim = {"tx_hash": f"0x{TX.hex()}", "nonce": to_pay["memo"]}
        with pytest.raises(PaymentPending):
            await topup(s, **claim)
        s.server.sees(paid(bytes.fromhex(to_pay["wallet"][2:]), 5))
        for _ in range(2):
            got = await topup(s, **claim)
            assert (got["token"], got["credits"], got["transfer"]) == (OWNER, 250, None)
            assert got["transaction"] == f"0x{TX.hex()}"
        assert await s.desk.ledger.balance(OWNER) == 260


async def test_it_needs_a_token_that_is_no_allowance_and_one_way_of_asking(tmp_path):
    async with shop(tmp_path, registry=Registry([TOPUP])) as s:
        await s.desk.ledger.mint(OWNER, 10, cause="owner")
        await s.desk.ledger.create_allowance(OWNER, token_hash(CHILD).hex(), AllowanceTerms("mine", 5))
        with pytest.raises(MissingToken, match="payment_buy_credits"):
            await topup(s, None, amount_usd=5)
        with pytest.raises(InvalidToken, match="allowance"):
            await topup(s, CHILD, amount_usd=5)
        memo = "svc_buy_" + "0" * 32
        for wrong in ({}, {"tx_hash": f"0x{TX.hex()}"}, {"amount_usd": 5, "tx_hash": f"0x{TX.hex()}", "nonce": memo}):
            with pytest.raises(InvalidArguments, match="give amount_usd"):
                await topup(s, **wrong)
        with pytest.raises(NotFound):
            await topup(s, tx_hash=f"0x{TX.hex()}", nonce=memo)


async def test_where_nothing_is_sold_there_is_no_top_up(tmp_path):
    async with shop(tmp_path, closed=True, registry=Registry([TOPUP])) as s:
        for token in (None, OWNER):
            with pytest.raises(NotFound, match="sells no credits"):
                await topup(s, token, amount_usd=5)
