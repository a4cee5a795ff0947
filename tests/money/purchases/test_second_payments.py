"""A second payment to one address is a purchase of its own on the same token, where the payer allows it."""

from decimal import Decimal

import anyio
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.money.chain.parts import HEADS, book_of, logged
from tests.money.purchases.parts import (
    OTHER,
    PAYER,
    TX,
    TX2,
    Server,
    address_of,
    desk,
    observed,
    paid,
    receipt,
    transfer_log,
)
from tests.money.purchases.wallet import private_key
from tests.postgres import POSTGRES
from toolserver.core.caller import token_hash
from toolserver.errors import AlreadyCredited, PaymentPending
from toolserver.money.chain.transfer_states import name_transfers
from toolserver.money.ledger.operations import ReplaceToken
from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.credit_sales import Claim
from toolserver.money.purchases.quotes import Ceilings
from toolserver.money.purchases.records import second_memo
from toolserver.money.purchases.service import text_to_sign
from toolserver.money.purchases.store import approve_transfer, list_deposit_states, memo_hash

TX3 = bytes([3]) * 32
NEWER = f"svc_live_{9:064x}"


@pytest.fixture(params=["sqlite", POSTGRES])
async def shop(request, tmp_path):
    server = Server()
    async with desk(tmp_path, [server], kind=request.param) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        token = (await d.confirm(TX, quote.memo)).token
        yield d, server, quote, token


def second(quote, usd=3, tx=TX2, payer=PAYER, **more):
    return observed(receipt(transfer_log(address_of(quote), usd, payer=payer), tx=tx), **more)


async def refusal(d, tx, memo, **more):
    with pytest.raises(AlreadyCredited) as refused:
        await d.confirm(tx, memo, **more)
    return refused.value


async def list_cases(d):
    return [(case.kind, case.tx, case.reason) for case in await d.store.list_cases()]


async def test_the_account_that_paid_first_pays_again_and_its_token_has_the_credits_once(shop):
    d, server, quote, token = shop
    server.sees(second(quote))
    told = [(await refusal(d, TX2, quote.memo)).extra["new_purchase"] for _ in range(3)]
    assert [each["credits"] for each in told] == [150] * 3
    assert await d.ledger.balance(token) == 400
    assert await list_cases(d) == []
    assert {each["transaction"] for each in told} == {f"0x{TX2.hex()}"}
    nonce = second_memo(memo_hash(quote.memo), TX2)
    bought = await d.confirmations.confirm(Claim(f"0x{TX2.hex()}", nonce), token)
    assert (bought.token, bought.credits) == (token, 150)
    rows = await d.rows("SELECT state, credits FROM purchase ORDER BY id")
    assert [tuple(row) for row in rows] == [("credited", 250), ("credited", 150)]


async def test_a_third_payment_is_a_third_purchase_and_what_is_not_settled_waits(shop):
    d, server, quote, token = shop
    server.sees(second(quote), second(quote, 2, TX3, latest=101))
    await refusal(d, TX2, quote.memo)
    with pytest.raises(PaymentPending):
        await d.confirm(TX3, quote.memo)
    server.sees(second(quote, 2, TX3))
    assert (await refusal(d, TX3, quote.memo)).extra["new_purchase"]["credits"] == 100
    assert await d.ledger.balance(token) == 500


async def test_another_account_has_to_sign_for_it_and_until_then_it_is_a_case(shop):
    d, server, quote, token = shop
    stranger = Account.from_key(private_key(7))
    server.sees(second(quote, payer=bytes.fromhex(stranger.address[2:])))
    assert (await refusal(d, TX2, quote.memo)).extra == {}
    assert await list_cases(d) == [("unapplied", TX2, "second_transfer")]
    assert await d.ledger.balance(token) == 250
    text = text_to_sign("localhost", quote.memo, TX2)
    signed = stranger.sign_message(encode_defunct(text=text)).signature.hex().removeprefix("0x")
    assert (await refusal(d, TX2, quote.memo, signature=f"0x{signed}")).extra["new_purchase"]["credits"] == 150
    assert await d.ledger.balance(token) == 400
    assert await list_cases(d) == []


class Slow(Server):
    """Does not say at once what it knows of the first payment, once it is asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = anyio.Event(), anyio.Event()
        self.may_answer.set()

    async def observe(self, tx_hash):
        if tx_hash == TX and not self.may_answer.is_set():
            self.is_asked.set()
            await self.may_answer.wait()
        return await super().observe(tx_hash)


async def test_others_are_credited_while_the_chain_is_asked_who_paid_first(tmp_path):
    server = Slow()
    async with desk(tmp_path, [server]) as d:
        first, other = await d.quote(), await d.quote()
        server.sees(paid(address_of(first), 5))
        await d.confirm(TX, first.memo)
        server.sees(second(first), observed(receipt(transfer_log(address_of(other), 5, payer=OTHER), tx=TX3)))
        server.may_answer = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refusal, d, TX2, first.memo)
            with anyio.fail_after(5):
                await server.is_asked.wait()
                assert (await d.confirm(TX3, other.memo)).credits == 250
            server.may_answer.set()
        assert await list_cases(d) == []


async def test_money_of_two_accounts_is_not_taken_for_that_of_one(shop):
    d, server, quote, token = shop
    logs = [transfer_log(address_of(quote), 3, at, payer=payer) for at, payer in enumerate((PAYER, OTHER))]
    server.sees(observed(receipt(*logs, tx=TX2)))
    assert (await refusal(d, TX2, quote.memo)).extra == {}
    assert await d.ledger.balance(token) == 250


async def test_what_nobody_confirms_is_credited_by_the_book_of_the_chain(shop):
    d, server, quote, token = shop
    server.sees(second(quote), second(quote, 2, TX3, payer=OTHER))
    placed = [
        logged(TX2, address_of(quote), 3, payer=PAYER),
        logged(TX3, address_of(quote), 2, payer=OTHER, log_index=1),
    ]
    book = book_of(d)
    await book.record(name_transfers(placed), HEADS, 1)
    for _ in range(2):
        await d.confirmations.credit_seconds()
    assert await d.ledger.balance(token) == 400
    assert await list_cases(d) == [("unapplied", TX3, "second_transfer")]
    assert await d.store.list_seconds() == []
    await book.decide_all(HEADS, 2)
    deposits = await d.ledger.file.read(list_deposit_states)
    assert [tuple(row) for row in deposits] == [(0, "second")]  # a sweep leaves the money that bought nothing
    states = {bytes(tx): state for tx, state in await d.rows("SELECT tx_hash, state FROM chain_transfer")}
    assert states == {TX2: "credited", TX3: "second"}


async def test_a_token_that_ended_gets_nothing_and_one_that_was_replaced_hands_on(shop):
    d, server, quote, token = shop
    server.sees(second(quote), second(quote, 2, TX3))
    newer = token_hash(NEWER).hex()
    await d.ledger.file.alone(
        lambda db: apply_operation(db, ReplaceToken(token_hash(token).hex(), newer), d.ledger.now())
    )
    await refusal(d, TX2, quote.memo)
    assert await d.ledger.balance(NEWER) == 400
    await d.ledger.revoke(newer[:16], "asked for")
    assert (await refusal(d, TX3, quote.memo)).extra == {}
    assert await list_cases(d) == [("unapplied", TX3, "second_transfer")]


async def test_a_second_payment_that_is_undone_takes_only_its_own_credits_and_may_come_back(shop):
    d, server, quote, token = shop
    server.sees(second(quote))
    await refusal(d, TX2, quote.memo)
    assert await d.store.reverse_credit(TX2, 1_800_000_000_000) == (150, 0)
    standing = await d.ledger.standing(token)
    assert (standing.credits, standing.revoked) == (250, None)
    assert (await refusal(d, TX2, quote.memo)).extra["new_purchase"]["credits"] == 150
    assert await d.ledger.balance(token) == 400
    assert len(await d.rows("SELECT id FROM purchase")) == 2


async def test_a_second_payment_beyond_a_ceiling_waits_for_a_person(tmp_path):
    server = Server()
    async with desk(tmp_path, [server], ceilings=Ceilings(purchase=10 * ATOMIC)) as d:
        quote = await d.quotes.make(Decimal(5))
        server.sees(paid(address_of(quote), 5), second(quote, 20))
        token = (await d.confirm(TX, quote.memo)).token
        for _ in range(2):
            with pytest.raises(PaymentPending, match="a person has to approve"):
                await d.confirm(TX2, quote.memo)
        assert await approve_transfer(d.ledger.file, TX2, 1)
        await refusal(d, TX2, quote.memo)
        assert await d.ledger.balance(token) == 1250
