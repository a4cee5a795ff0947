"""Top-ups by a plain transfer: the credits go to the token that asked, and to no other, whatever the chain does."""

from decimal import Decimal

import anyio
import pytest

from tests.money.purchases.parts import TX, TX2, Server, address_of, desk, observed, paid, receipt, transfer_log
from tests.postgres import POSTGRES
from tests.requirements import proves
from toolserver.core.caller import token_hash
from toolserver.errors import AlreadyCredited, NotFound, PayerProofRequired, RevokedToken
from toolserver.money.ledger.operations import ReplaceToken
from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.ledger.state import AccountRef
from toolserver.money.purchases.credit_sales import Claim

OWNER, OTHER, NEWER = (f"svc_live_{number:064x}" for number in (1, 2, 3))


@pytest.fixture(params=["sqlite", POSTGRES])
async def shop(request, tmp_path):
    server = Server()
    async with desk(tmp_path, [server], kind=request.param) as opened:
        await opened.ledger.mint(OWNER, 10, cause="owner")
        await opened.ledger.mint(OTHER, 10, cause="other")
        yield opened, server


async def quote(d, token=OWNER):
    return await d.quotes.make(Decimal(5), tops_up=token_hash(token).hex())


def claim(memo, tx=TX):
    return Claim(f"0x{tx.hex()}", memo)


@proves("purchase.topup")
async def test_a_transfer_adds_to_the_token_that_asked_once_and_tells_so_again(shop):
    d, server = shop
    offered = await quote(d)
    server.sees(paid(address_of(offered), 5))
    for _ in range(2):
        bought = await d.confirmations.confirm(claim(offered.memo), OWNER)
        assert (bought.token, bought.credits) == (OWNER, 250)
    assert await d.ledger.balance(OWNER) == 260
    assert await d.rows("SELECT token, sealed FROM tx_credit") == [(token_hash(OWNER).hex(), None)]
    server.sees(paid(address_of(offered), 5, tx=TX2))
    for _ in range(2):  # a purchase of its own, on the same token
        with pytest.raises(AlreadyCredited) as told:
            await d.confirmations.confirm(claim(offered.memo, TX2), OWNER)
        assert told.value.extra["new_purchase"]["credits"] == 250
    assert await d.ledger.balance(OWNER) == 510


@proves("purchase.topup")
async def test_an_account_is_topped_up_without_its_token_and_nobody_is_told_one(shop):
    d, server = shop
    offered = await quote(d)
    server.sees(paid(address_of(offered), 5))
    with pytest.raises(NotFound):
        await d.confirmations.confirm(claim(offered.memo), AccountRef(token_hash(OTHER).hex()))
    for _ in range(2):
        bought = await d.confirmations.confirm(claim(offered.memo), AccountRef(token_hash(OWNER).hex()))
        assert bought == ("", 250, False)
    assert [await d.ledger.balance(token) for token in (OWNER, OTHER)] == [260, 10]
    assert await d.rows("SELECT token, sealed FROM tx_credit") == [(token_hash(OWNER).hex(), None)]


@proves("purchase.topup")
async def test_claims_at_once_credit_it_once(shop):
    d, server = shop
    offered = await quote(d)
    server.sees(paid(address_of(offered), 5))
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(d.confirmations.confirm, claim(offered.memo), OWNER)
    assert await d.ledger.balance(OWNER) == 260


@proves("purchase.topup")
async def test_neither_another_token_nor_a_confirmation_without_one_gets_it(shop):
    d, server = shop
    offered, ordinary = await quote(d), await d.quote()
    server.sees(paid(address_of(offered), 5), paid(address_of(ordinary), 5, tx=TX2))
    with pytest.raises(PayerProofRequired, match="payment_topup"):
        await d.confirm(TX, offered.memo)
    with pytest.raises(NotFound):
        await d.confirmations.confirm(claim(offered.memo), OTHER)
    with pytest.raises(NotFound, match="payment_confirm"):
        await d.confirmations.confirm(claim(ordinary.memo, TX2), OWNER)
    assert [await d.ledger.balance(token) for token in (OWNER, OTHER)] == [10, 10]


@proves("purchase.topup")
async def test_a_payment_that_is_undone_takes_the_credits_back_and_revokes_the_token_only_if_they_were_spent(shop):
    d, server = shop
    for tx, spent, revoked in ((TX, 0, False), (TX2, 100, True)):
        offered = await quote(d)
        server.sees(paid(address_of(offered), 5, tx=tx))
        await d.confirmations.confirm(claim(offered.memo, tx), OWNER)
        if spent:
            await d.ledger.charge("call_1", OWNER, spent, endpoint="/api/pro/x")
        await d.store.reverse_credit(tx, 1_800_000_000_000)
        standing = await d.ledger.standing(OWNER)
        assert (standing.revoked is not None) is revoked, spent
        assert standing.credits == (0 if revoked else 10)


@proves("purchase.topup")
async def test_a_transaction_that_pays_two_top_ups_credits_one_of_them_even_after_it_was_undone(shop):
    d, server = shop
    one, two = await quote(d), await quote(d)
    logs = [transfer_log(address_of(each), 5, index) for index, each in enumerate((one, two))]
    server.sees(observed(receipt(*logs)))
    await d.confirmations.confirm(claim(one.memo), OWNER)
    await d.store.reverse_credit(TX, 1_800_000_000_000)
    with pytest.raises(AlreadyCredited):
        await d.confirmations.confirm(claim(two.memo), OWNER)
    assert await d.ledger.balance(OWNER) == 10
    await d.confirmations.confirm(claim(one.memo), OWNER)
    assert await d.ledger.balance(OWNER) == 260


@proves("purchase.topup")
async def test_a_token_that_was_replaced_since_gets_it_and_one_that_was_revoked_gives_a_new_one(shop):
    d, server = shop
    offered, lost = await quote(d), await quote(d, OTHER)
    first, newer = (token_hash(token).hex() for token in (OWNER, NEWER))
    await d.ledger.file.alone(lambda db: apply_operation(db, ReplaceToken(first, newer), d.ledger.now()))
    await d.ledger.revoke(token_hash(OTHER).hex()[:16], "asked for")
    server.sees(paid(address_of(offered), 5), paid(address_of(lost), 5, tx=TX2))
    with pytest.raises(NotFound):
        await d.confirmations.confirm(claim(offered.memo), OWNER)
    assert (await d.confirmations.confirm(claim(offered.memo), NEWER)).token == NEWER
    assert await d.ledger.balance(NEWER) == 260
    bought = await d.confirm(TX2, lost.memo)
    assert bought.token not in (OTHER, OWNER, NEWER)
    assert await d.ledger.balance(bought.token) == 250
    with pytest.raises(RevokedToken):
        await d.ledger.balance(OTHER)
