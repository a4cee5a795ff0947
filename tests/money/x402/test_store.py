"""The contract of every store of signed payments, over SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.money.ledger.ledgers import opened
from tests.postgres import POSTGRES
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.protocol import LedgerOwner
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.x402.records import MOST_LISTED, BegunPayment, NonceUsed, TopupCredit
from toolserver.money.x402.store import SqlPaymentStore

NOW = 1_800_000_000
MS = NOW * 1000
ID, ID2, TX, TX2 = (bytes([number]) * 32 for number in (1, 2, 3, 4))
PAYER = bytes([0xAA]) * 20
TOKEN, TOKEN2 = "svc_live_" + "a" * 64, "svc_live_" + "b" * 64
HASH, HASH2 = token_hash(TOKEN).hex(), token_hash(TOKEN2).hex()
BEGUN = BegunPayment(ID, PAYER, bytes(32), 2_000_000, "topup new", NOW + 120, b"c" * 32, MS, 77)
CREDIT = TopupCredit(ID, TX, HASH, 100, b"box", MS + 900_000, MS + 1)


@dataclass
class Stored:
    """A store, and the ledger beside it."""

    store: SqlPaymentStore
    ledger: LedgerOwner

    async def credited(self, **changed: Any) -> None:
        await self.store.begin_payment(BEGUN)
        await self.store.credit_topup(CREDIT._replace(**changed))


@pytest.fixture(params=["sqlite", POSTGRES])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stored]:
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    async with opened(request.param, tmp_path, clock) as durable:
        assert isinstance(durable, SqlLedger)
        yield Stored(SqlPaymentStore(durable.file), durable)
        assert await durable.check() == []


# --- one authorisation, once


async def test_a_payment_is_found_as_it_was_begun(stored):
    assert await stored.store.find_payment(ID) is None
    await stored.store.begin_payment(BEGUN)
    assert await stored.store.find_payment(ID) == (
        *(ID, "topup new", "settling", None, b"c" * 32, None, None, None, None),
        *(MS, None, 77, None, False),
    )


@pytest.mark.parametrize("changed", [{"payload": ID2}, {"nonce": bytes([1]) * 32}])
async def test_neither_a_payment_nor_a_nonce_is_begun_twice(stored, changed):
    await stored.store.begin_payment(BEGUN)
    with pytest.raises(NonceUsed):
        await stored.store.begin_payment(BEGUN._replace(**changed))
    assert len(await stored.store.list_unsettled(MS + 1)) == 1


async def test_two_payers_may_use_the_same_nonce(stored):
    await stored.store.begin_payment(BEGUN)
    await stored.store.begin_payment(BEGUN._replace(payload=ID2, payer=bytes(20)))
    assert len(await stored.store.list_unsettled(MS + 1)) == 2


async def test_a_validity_without_end_can_be_stored(stored):
    await stored.store.begin_payment(BEGUN._replace(valid_before=2**256 - 1))
    (found,) = await stored.store.list_unsettled(MS + 1)
    assert found.valid_before >= 2**62


async def test_a_payment_that_was_not_made_can_be_begun_again(stored):
    await stored.store.begin_payment(BEGUN)
    await stored.store.drop_payment(ID)
    assert await stored.store.find_payment(ID) is None
    await stored.store.begin_payment(BEGUN)


async def test_what_is_settled_stays_settled(stored):
    await stored.store.begin_payment(BEGUN)
    await stored.store.record_transaction(ID, TX2)
    assert (await stored.store.find_payment(ID)).tx_hash == TX2
    await stored.store.record_settled(ID, TX, MS + 5)
    await stored.store.record_settled(ID, TX2, MS + 6)
    await stored.store.record_transaction(ID, TX2)
    await stored.store.drop_payment(ID)
    found = await stored.store.find_payment(ID)
    assert (found.state, found.tx_hash, found.settled_at) == ("settled", TX, MS + 5)


async def test_what_is_unknown_cannot_be_changed(stored):
    await stored.store.drop_payment(ID)
    await stored.store.record_transaction(ID, TX)
    await stored.store.record_settled(ID, TX, MS)
    assert await stored.store.find_payment(ID) is None


# --- credits


async def test_a_top_up_is_settled_and_credited_at_once(stored):
    await stored.credited()
    assert await stored.ledger.balance(TOKEN) == 100
    assert await stored.store.find_payment(ID) == (
        *(ID, "topup new", "settled", TX, b"c" * 32, HASH, 100, b"box", MS + 900_000),
        *(MS, MS + 1, 77, None, False),
    )


async def test_a_top_up_adds_to_a_known_token(stored):
    await stored.ledger.mint(TOKEN, 5, cause="test")
    await stored.credited(sealed=None, sealed_until=None)
    assert await stored.ledger.balance(TOKEN) == 105


async def test_a_payment_that_was_settled_first_keeps_its_transaction_when_it_is_credited(stored):
    await stored.store.begin_payment(BEGUN)
    await stored.store.record_settled(ID, TX2, MS)
    await stored.store.credit_topup(CREDIT)
    found = await stored.store.find_payment(ID)
    assert (found.tx_hash, found.settled_at, found.token) == (TX2, MS, HASH)


async def test_a_payment_is_credited_once_and_an_unknown_one_never(stored):
    await stored.credited()
    for given in (CREDIT, CREDIT._replace(token=HASH2), CREDIT._replace(payload=ID2, token=HASH2)):
        with pytest.raises(NonceUsed):
            await stored.store.credit_topup(given)
    assert await stored.ledger.balance(TOKEN) == 100
    assert await stored.ledger.knows(TOKEN2) is False


async def test_a_credit_that_the_ledger_refuses_leaves_the_payment_unsettled(stored):
    await stored.ledger.mint(TOKEN, 5, cause="test")
    await stored.ledger.revoke(HASH[:16], "lost")
    await stored.store.begin_payment(BEGUN)
    with pytest.raises(PaymentRequired):
        await stored.store.credit_topup(CREDIT)
    found = await stored.store.find_payment(ID)
    assert (found.state, found.token) == ("settling", None)


# --- a token that nobody got


async def test_a_token_that_was_never_used_can_be_replaced(stored):
    await stored.credited()
    await stored.store.replace_token(HASH, CREDIT._replace(token=HASH2, sealed=None, sealed_until=None))
    assert await stored.ledger.balance(TOKEN2) == 100
    with pytest.raises(PaymentRequired):
        await stored.ledger.balance(TOKEN)
    found = await stored.store.find_payment(ID)
    assert (found.token, found.credits, found.sealed, found.tx_hash) == (HASH2, 100, None, TX)


@pytest.mark.parametrize("wrong", ["used", "another token", "unknown", "other credits"])
async def test_nothing_else_can_be_replaced(stored, wrong):
    await stored.credited()
    given, old = CREDIT._replace(token=HASH2), HASH
    if wrong == "used":
        await stored.ledger.charge("call_1", TOKEN, 1, endpoint="/x")
        assert (await stored.store.find_payment(ID)).used is True
    elif wrong == "another token":
        old = HASH2
    elif wrong == "unknown":
        given = given._replace(payload=ID2)
    else:
        given = given._replace(credits=101)
    before = await stored.ledger.balance(TOKEN)
    with pytest.raises(NonceUsed):
        await stored.store.replace_token(old, given)
    assert await stored.ledger.balance(TOKEN) == before
    assert await stored.ledger.knows(TOKEN2) is False


# --- what is unsettled


async def test_unsettled_payments_are_listed_oldest_first(stored):
    for number, at in ((1, 7), (2, 5), (3, 9)):
        name = bytes([number]) * 32
        await stored.store.begin_payment(BEGUN._replace(payload=name, nonce=name, begun_at=MS + at))
    await stored.store.begin_payment(BEGUN._replace(payload=bytes(32), begun_at=MS))
    await stored.store.record_settled(bytes(32), TX, MS)
    found = await stored.store.list_unsettled(MS + 9)
    assert [one.payload[0] for one in found] == [2, 1]
    assert found[0] == (ID2, PAYER, ID2, 2_000_000, "topup new", NOW + 120, MS + 5, 77, None)
    assert await stored.store.list_unsettled(MS + 9, (MS + 5, ID2)) == found[1:]
    assert await stored.store.list_unsettled(MS + 9, (MS + 7, ID)) == []


async def test_the_list_of_unsettled_payments_is_bounded(stored):
    for number in range(MOST_LISTED + 1):
        name = number.to_bytes(32, "big")
        await stored.store.begin_payment(BEGUN._replace(payload=name, nonce=name, begun_at=MS + number))
    assert len(await stored.store.list_unsettled(MS + 999)) == MOST_LISTED


# --- cases


async def test_only_what_is_owed_or_unknown_for_long_is_a_case(stored):
    await stored.store.begin_payment(BEGUN)
    assert await stored.store.list_payment_cases(MS + 3_599_999) == []
    assert await stored.store.measure_backlog(MS + 3_599_999) == (1, MS, 0)
    (case,) = await stored.store.list_payment_cases(MS + 3_600_000)
    assert case == ("unsettled", None, PAYER, 2_000_000, "a top-up", None, MS)
    await stored.store.record_settled(ID, TX, MS + 5)
    assert await stored.store.list_payment_cases(MS + 600_004) == []
    (case,) = await stored.store.list_payment_cases(MS + 600_005)
    assert case == ("uncredited", TX, PAYER, 2_000_000, "a top-up", None, MS + 5)
    assert await stored.store.measure_backlog(MS + 600_005) == (0, None, 1)
    await stored.store.credit_topup(CREDIT)
    assert await stored.store.list_payment_cases(MS + 10**9) == []


async def test_a_paid_call_is_a_case_until_it_is_answered(stored):
    await stored.store.begin_payment(BEGUN._replace(request="GET /api/pro/report abc"))
    await stored.store.record_settled(ID, TX, MS)
    (case,) = await stored.store.list_payment_cases(MS + 600_000)
    assert (case.kind, case.reason) == ("unanswered", "GET /api/pro/report")
    await stored.store.record_answered(ID, MS + 9)
    await stored.store.record_answered(ID, MS + 10)
    assert (await stored.store.find_payment(ID)).answered_at == MS + 9
    assert await stored.store.list_payment_cases(MS + 10**9) == []


async def test_encrypted_tokens_are_deleted_when_their_time_is_over(stored):
    await stored.credited()
    await stored.store.forget_old_tokens(MS + 900_000)
    assert (await stored.store.find_payment(ID)).sealed == b"box"
    await stored.store.forget_old_tokens(MS + 900_001)
    found = await stored.store.find_payment(ID)
    assert (found.sealed, found.sealed_until, found.credits) == (None, None, 100)
