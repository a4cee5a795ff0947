"""The contract of the store of purchases, over SQLite and PostgreSQL."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.money.ledger.ledgers import opened as opened_ledger
from tests.money.purchases.parts import NOW, OTHER, TX, TX2, block_hash, observed, receipt, transfer_log
from tests.postgres import POSTGRES
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.operations import CauseReused, Mint, Reserve
from toolserver.money.ledger.protocol import LedgerOwner
from toolserver.money.ledger.state import LedgerState
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.purchases.listing import ListedPurchase
from toolserver.money.purchases.matching import match_deposit
from toolserver.money.purchases.records import (
    AddressInUse,
    BlockUpdate,
    NotCreditable,
    PurchaseDraft,
    TakeBack,
    TransferCredit,
    UnappliedPayment,
)
from toolserver.money.purchases.store import CreditFacts, SqlPurchaseStore, decide_credit, memo_hash, other_transfers

KINDS = ("sqlite", POSTGRES)
US, SECOND = bytes([0xD0]) * 20, bytes([0xD1]) * 20
TOKEN, TOKEN2 = "svc_live_" + "a" * 64, "svc_live_" + "b" * 64
MS = NOW * 1000


@dataclass
class Kept:
    """A store, and the ledger beside it."""

    store: SqlPurchaseStore
    ledger: LedgerOwner

    async def quote(self, number: int = 0, **changed: Any) -> bytes:
        """A purchase of 5 USDC; its memo's hash."""
        draft = PurchaseDraft(bytes([number]) * 32, US, number, 5_000_000, 250, None, MS + number, MS + 1800_000)
        await self.store.add_quote(draft._replace(**changed))
        return draft.memo_hash

    async def spend(self, credits: int, token: str = TOKEN) -> None:
        await self.ledger.charge(f"call_{credits}", token, credits, endpoint="/api/pro/x")


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Kept]:
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    async with opened_ledger(kind, folder, clock) as durable:
        assert isinstance(durable, SqlLedger)
        yield Kept(SqlPurchaseStore(durable.file), durable)
        assert await durable.check() == []


@pytest.fixture(params=KINDS)
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    async with opened(request.param, tmp_path) as made:
        yield made


def credit(purchase: int = 1, usd: float = 5, *, tx: bytes = TX, token: str = TOKEN, **changed: Any) -> TransferCredit:
    """A payment of so much to US, in block 100."""
    seen = changed.pop("seen", None) or observed(receipt(transfer_log(US, usd), tx=tx))
    paid = match_deposit(seen.receipt, changed.pop("address", US))
    assert paid is not None
    hashed = token_hash(token).hex()
    credits = int(paid.amount * 50 // 10**6)
    made = TransferCredit(purchase, tx, hashed, seen, paid, credits, "blocks", False, False, b"box", MS + 900_000, MS)
    return made._replace(**changed)


# --- quotes


async def test_a_quote_is_found_by_its_memo_and_by_no_other(kept):
    memo = await kept.quote(challenge="a" * 43)
    assert await kept.store.find_purchase(memo) == (1, US, 0, 5_000_000, "a" * 43, "quoted", MS, MS + 1800_000, None)
    assert await kept.store.find_purchase(bytes([9]) * 32) is None


async def test_the_next_index_is_above_every_index_that_was_used(kept):
    assert await kept.store.find_next_index() == 0
    await kept.quote(7)
    await kept.quote(3, address=SECOND)
    await kept.quote(9, hd_index=None)
    assert await kept.store.find_next_index() == 8
    assert await kept.store.list_deposits() == [(3, SECOND), (7, US)]


@pytest.mark.parametrize("changed", [{"hd_index": 0}, {"address": US}, {"memo_hash": bytes(32)}])
async def test_an_index_an_address_and_a_memo_are_given_out_once(kept, changed):
    await kept.quote(0)
    with pytest.raises(AddressInUse):
        await kept.quote(1, **({"address": SECOND} | changed))
    assert len(await kept.store.list_purchases(None, 9)) == 1


async def test_a_shared_address_is_of_many_purchases(kept):
    for number in range(3):
        await kept.quote(number, hd_index=None)
    assert await kept.store.list_deposits() == []
    assert len(await kept.store.list_purchases("quoted", 9)) == 3


async def test_unpaid_quotes_are_put_aside_and_their_memos_still_claim_them(kept):
    memos = [await kept.quote(n, address=bytes([n]) * 20, expires_at=MS + n) for n in range(4)]
    await kept.store.credit_transfer(credit(purchase=1))
    paid_wrongly = UnappliedPayment(TX2, 2, 1, "below_minimum", MS)
    await kept.store.record_unapplied(paid_wrongly)
    before = await kept.store.find_purchase(memos[2])
    assert await kept.store.put_quotes_aside(MS + 3, 9) == 1, "neither what was paid, nor what has not expired"
    assert [one.id for one in await kept.store.list_purchases(None, 9)] == [4, 2, 1]
    assert await kept.store.find_next_index() == 4
    assert await kept.store.list_deposits() == [(n, bytes([n]) * 20) for n in range(4)]

    assert await kept.store.find_purchase(memos[2]) == before
    assert [one.id for one in await kept.store.list_purchases(None, 9)] == [4, 3, 2, 1]
    assert await kept.store.credit_transfer(credit(3, tx=bytes([3]) * 32, token=TOKEN2)) == 250


async def test_quotes_are_put_aside_a_few_at_a_time_and_their_numbers_stay_used(kept):
    for number in range(5):
        await kept.quote(number, address=bytes([number]) * 20)
    assert [await kept.store.put_quotes_aside(MS * 2, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert await kept.store.list_purchases(None, 9) == []
    assert await kept.store.find_next_index() == 5
    assert await kept.store.find_purchase(bytes([9]) * 32) is None


# --- credits


async def test_a_payment_becomes_credits_on_a_new_token(kept):
    memo = await kept.quote()
    assert await kept.store.credit_transfer(credit()) == 250
    assert await kept.ledger.balance(TOKEN) == 250
    assert (await kept.store.find_purchase(memo)).state == "credited"
    assert await kept.store.find_credit(1) == (
        *(TX, 1, US, token_hash(TOKEN).hex(), 100, block_hash(100), 5_000_000, 250),
        *(False, b"box", MS + 900_000, None, False),
    )


async def test_what_is_not_credited_has_no_credit(kept):
    await kept.quote()
    assert await kept.store.find_credit(1) is None
    assert await kept.store.list_watched() == []


async def test_neither_a_purchase_nor_a_transaction_is_credited_twice(kept):
    await kept.quote(0)
    await kept.quote(1, address=SECOND)
    await kept.store.credit_transfer(credit())
    for again in (credit(tx=TX2, token=TOKEN2), credit(2, token=TOKEN2)):
        with pytest.raises(NotCreditable):
            await kept.store.credit_transfer(again)
    assert await kept.ledger.knows(TOKEN2) is False
    assert (await kept.store.find_purchase(bytes([1]) * 32)).state == "quoted"


async def test_of_many_claims_at_once_one_is_credited(kept):
    await kept.quote()
    done: list[int] = []

    async def claim(number: int) -> None:
        try:
            done.append(await kept.store.credit_transfer(credit(token=f"svc_live_{number:064x}")))
        except NotCreditable:
            return

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(claim, number)
    assert done == [250]


async def test_a_credit_that_the_ledger_refuses_leaves_nothing(kept):
    memo = await kept.quote()
    await kept.ledger.mint(TOKEN2, 250, cause=f"eip155:8453:0x{TX.hex()}:0")
    with pytest.raises(CauseReused):
        await kept.store.credit_transfer(credit())
    assert (await kept.store.find_purchase(memo)).state == "quoted"
    assert await kept.store.find_credit(1) is None
    assert await kept.ledger.knows(TOKEN) is False


async def test_what_else_a_transaction_paid_is_recorded_as_unapplied(kept):
    await kept.quote(0)
    await kept.quote(1, address=SECOND)
    logs = (transfer_log(US, 5, 1), transfer_log(SECOND, 2, 2), transfer_log(OTHER, 9, 3))
    await kept.store.credit_transfer(credit(seen=observed(receipt(*logs))))
    (case,) = await kept.store.list_cases()
    assert case == ("unapplied", TX, SECOND, 2_000_000, "transaction_used", None, MS)


async def test_of_a_shared_address_only_the_purchase_itself_is_an_owner(kept):
    await kept.quote(0, hd_index=None)
    await kept.quote(1, hd_index=None)
    given = credit(2, seen=observed(receipt(transfer_log(US, 5, 1), transfer_log(US, 2, 2))))
    await kept.store.credit_transfer(given._replace(paid=given.paid._replace(indexes=(1,), amount=5_000_000)))
    assert [(case.kind, case.amount) for case in await kept.store.list_cases()] == []
    assert (await kept.store.list_purchases("credited", 9))[0].id == 2


# --- the token that waits


async def test_a_token_waits_until_it_is_forgotten(kept):
    await kept.quote()
    await kept.store.credit_transfer(credit())
    hashed = token_hash(TOKEN).hex()
    assert await kept.store.is_token_waiting(hashed) is True
    await kept.store.forget_token(hashed)
    assert await kept.store.is_token_waiting(hashed) is False
    found = await kept.store.find_credit(1)
    assert (found.sealed, found.sealed_until) == (None, None)


@pytest.mark.parametrize(("at", "waits"), [(900_000, True), (900_001, False)])
async def test_a_token_is_forgotten_when_its_time_is_over(kept, at, waits):
    await kept.quote()
    await kept.store.credit_transfer(credit())
    await kept.store.forget_old_tokens(MS + at)
    assert await kept.store.is_token_waiting(token_hash(TOKEN).hex()) is waits


async def test_a_token_is_forgotten_once_it_was_used(kept):
    await kept.quote()
    await kept.store.credit_transfer(credit())
    await kept.spend(1)
    assert (await kept.store.find_credit(1)).used is True
    await kept.store.forget_old_tokens(MS)
    assert await kept.store.is_token_waiting(token_hash(TOKEN).hex()) is False


# --- the chain


async def test_a_credit_is_watched_until_its_block_is_final(kept):
    await kept.quote()
    await kept.store.credit_transfer(credit())
    await kept.store.record_missing(TX, MS + 1)
    await kept.store.record_missing(TX, MS + 2)
    assert [one.missing_since for one in await kept.store.list_watched()] == [MS + 1]
    await kept.store.record_block(BlockUpdate(TX, 101, block_hash(101), MS, None), MS + 2)
    (watched,) = await kept.store.list_watched()
    assert (watched.block_number, watched.block_hash, watched.missing_since) == (101, block_hash(101), None)
    await kept.store.record_block(BlockUpdate(TX, 101, block_hash(101), MS, MS + 3), MS + 3)
    assert await kept.store.list_watched() == []


async def test_watched_credits_are_listed_oldest_first(kept):
    await kept.quote(0)
    await kept.quote(1, address=SECOND)
    await kept.store.credit_transfer(credit(credited_at=MS + 5))
    second = observed(receipt(transfer_log(SECOND, 5), tx=TX2))
    await kept.store.credit_transfer(credit(2, tx=TX2, token=TOKEN2, seen=second, address=SECOND, credited_at=MS + 4))
    assert [one.purchase for one in await kept.store.list_watched()] == [2, 1]


async def test_a_reversal_takes_back_what_is_unspent_and_revokes_the_token(kept):
    memo = await kept.quote()
    await kept.store.credit_transfer(credit())
    await kept.spend(10)
    assert await kept.store.reverse_credit(TX, MS + 9) == (240, 10)
    assert await kept.store.reverse_credit(TX, MS + 9) == (0, 0)
    with pytest.raises(PaymentRequired):
        await kept.ledger.balance(TOKEN)
    assert (await kept.store.find_purchase(memo)).state == "reorged"
    assert await kept.store.find_credit(1) is None
    assert await kept.store.list_cases() == [("undone", TX, US, 5_000_000, None, 10, MS + 9)]


async def test_a_payment_that_comes_back_buys_what_was_not_spent_of_it(kept):
    await kept.quote()
    await kept.store.credit_transfer(credit())
    await kept.spend(10)
    await kept.store.reverse_credit(TX, MS)
    assert await kept.store.credit_transfer(credit(token=TOKEN2)) == 240
    assert await kept.ledger.balance(TOKEN2) == 240


async def test_a_payment_that_was_all_spent_buys_nothing_when_it_comes_back(kept):
    memo = await kept.quote()
    await kept.store.credit_transfer(credit())
    await kept.spend(250)
    assert await kept.store.reverse_credit(TX, MS) == (0, 250)
    with pytest.raises(NotCreditable):
        await kept.store.credit_transfer(credit(token=TOKEN2))
    assert (await kept.store.find_purchase(memo)).state == "reorged"


# --- lists


async def test_purchases_are_listed_newest_first_with_what_was_paid(kept):
    await kept.quote(0)
    await kept.quote(1, address=SECOND)
    await kept.store.credit_transfer(credit(usd=7))
    first = ListedPurchase(1, "credited", 7_000_000, 350, US, MS, MS + 1800_000, TX)
    second = ListedPurchase(2, "quoted", 5_000_000, 250, SECOND, MS + 1, MS + 1800_000, None)
    assert await kept.store.list_purchases(None, 9) == [second, first]
    assert await kept.store.list_purchases(None, 1) == [second]
    assert await kept.store.list_purchases("credited", 1) == [first]
    assert await kept.store.list_purchases("reorged", 1) == []


async def test_money_that_bought_nothing_is_a_case_until_it_is_credited_after_all(kept):
    await kept.quote()
    await kept.store.record_unapplied(UnappliedPayment(TX2, 1, 9, "second_transfer", MS + 2))
    await kept.store.record_unapplied(UnappliedPayment(TX, 1, 7, "late", MS + 1))
    await kept.store.record_unapplied(UnappliedPayment(TX, 1, 8, "late", MS + 3))
    assert [(case.tx, case.amount, case.reason) for case in await kept.store.list_cases()] == [
        (TX, 7, "late"),
        (TX2, 9, "second_transfer"),
    ]
    await kept.store.credit_transfer(credit())
    assert [case.tx for case in await kept.store.list_cases()] == [TX2]


HASH = token_hash(TOKEN).hex()


def facts(**changed: Any) -> CreditFacts:
    return CreditFacts("quoted", US, False, 0, 0, {US: 1, SECOND: 2})._replace(**changed)


def test_a_payment_mints_its_credits_once_for_its_transaction():
    decision = decide_credit(credit(), facts())
    assert (decision.credits, decision.unapplied) == (250, [])
    assert (decision.mint.key, decision.mint.credits) == (HASH, 250)
    assert decision.mint.cause == f"eip155:8453:0x{TX.hex()}:0"


@pytest.mark.parametrize("changed", [{"state": "credited"}, {"transaction_used": True}, {"lost": 250}, {"lost": 251}])
def test_what_was_credited_or_spent_before_is_not_credited(changed):
    with pytest.raises(NotCreditable):
        decide_credit(credit(), facts(**changed))


def test_after_a_reversal_what_was_spent_is_deducted_and_the_cause_is_another():
    decision = decide_credit(credit(), facts(state="reorged", reversals=2, lost=249))
    assert (decision.credits, decision.mint.credits) == (1, 1)
    assert decision.mint.cause.endswith(":2")


def test_other_transfers_to_us_are_unapplied_by_purchase_and_those_to_others_are_not_ours():
    logs = [transfer_log(US, 5, 0), transfer_log(SECOND, 1, 1), transfer_log(SECOND, 2, 2), transfer_log(OTHER, 4, 3)]
    given = credit(seen=observed(receipt(*logs)))
    assert [t.log_index for t in other_transfers(given)] == [1, 2, 3]
    assert decide_credit(given, facts()).unapplied == [(TX, 2, 3_000_000, "transaction_used", MS)]


def test_of_a_shared_address_the_rest_belongs_to_the_purchase_that_is_credited():
    given = credit(seen=observed(receipt(transfer_log(US, 5, 0), transfer_log(US, 2, 1))))
    given = given._replace(paid=given.paid._replace(indexes=(0,)))
    assert decide_credit(given, facts(owners={})).unapplied == [(TX, 1, 2_000_000, "transaction_used", MS)]


def test_a_transfer_of_nothing_is_not_recorded():
    given = credit(seen=observed(receipt(transfer_log(US, 5, 0), transfer_log(SECOND, 0, 1))))
    assert decide_credit(given, facts()).unapplied == []


@pytest.mark.parametrize(("spent", "taken"), [(0, 100), (30, 70), (100, 0)])
def test_taking_back_revokes_the_token_and_never_goes_below_zero(spent, taken):
    books = LedgerState(MS)
    Mint(HASH, 100, "test", "acct_1").on(books)
    if spent:
        Reserve("call_1", HASH, spent, "/x", "", MS + 1000).on(books)
    assert TakeBack(HASH, 100, "undone").on(books) == taken
    token = books.tokens[HASH]
    assert (token.revoked_at, token.revoke_reason) == (MS, "undone")
    assert books.accounts[token.account].spendable == 0


def test_of_a_token_with_more_only_the_credits_named_are_taken_back():
    books = LedgerState(MS)
    Mint(HASH, 100, "test", "acct_1").on(books)
    assert TakeBack(HASH, 40, "undone").on(books) == 40
    assert books.accounts[books.tokens[HASH].account].spendable == 60


def test_a_memo_is_stored_as_its_sha_256():
    assert memo_hash("svc_buy_00") == hashlib.sha256(b"svc_buy_00").digest()
