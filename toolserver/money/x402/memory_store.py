"""Keeps signed payments in memory, beside a ledger in memory: for tests, and as the reference for other stores."""

from dataclasses import dataclass

from toolserver.money.ledger.operations import LedgerState
from toolserver.money.purchases.listing import ReviewCase
from toolserver.money.x402.records import (
    FIRST,
    MOST_LISTED,
    BegunPayment,
    NonceUsed,
    PaymentBacklog,
    StoredPayment,
    TopupCredit,
    UnsettledPayment,
    mint_replacement,
    mint_topup,
    show_payment_case,
    withdraw_unused,
)


@dataclass(slots=True)
class _PaymentRow:
    begun: BegunPayment
    tx_hash: bytes | None = None
    settled_at: int | None = None
    credit: TopupCredit | None = None
    answered_at: int | None = None


class MemoryPaymentStore:
    """See PaymentStore. `books` is the state of the ledger in memory whose tokens are funded."""

    def __init__(self, books: LedgerState) -> None:
        self._books = books
        self._rows: dict[bytes, _PaymentRow] = {}

    async def find_payment(self, payload: bytes) -> StoredPayment | None:
        row = self._rows.get(payload)
        return self._show(row) if row else None

    async def begin_payment(self, payment: BegunPayment) -> None:
        known = {(row.begun.payer, row.begun.nonce) for row in self._rows.values()}
        if payment.payload in self._rows or (payment.payer, payment.nonce) in known:
            raise NonceUsed("handed on before")
        self._rows[payment.payload] = _PaymentRow(payment)

    async def drop_payment(self, payload: bytes) -> None:
        if self._find_unsettled(payload):
            del self._rows[payload]

    async def record_transaction(self, payload: bytes, tx_hash: bytes) -> None:
        if row := self._find_unsettled(payload):
            row.tx_hash = tx_hash

    async def record_settled(self, payload: bytes, tx_hash: bytes, now: int) -> None:
        if row := self._find_unsettled(payload):
            row.tx_hash, row.settled_at = tx_hash, now

    async def credit_topup(self, given: TopupCredit) -> None:
        row = self._rows.get(given.payload)
        if row is None:
            raise NonceUsed("not handed on")
        mint = mint_topup(given, row.begun.payer, row.begun.nonce, row.credit.token if row.credit else None)
        self._books.now = given.credited_at
        mint.on(self._books)
        await self.record_settled(given.payload, given.tx_hash, given.credited_at)
        row.credit = given

    async def replace_token(self, old: str, given: TopupCredit) -> None:
        withdrawal = withdraw_unused(old, await self.find_payment(given.payload), given.credits)
        self._books.now = given.credited_at
        mint_replacement(old, given, withdrawal.on(self._books)).on(self._books)
        self._rows[given.payload].credit = given

    async def record_answered(self, payload: bytes, now: int) -> None:
        if (row := self._rows.get(payload)) and row.answered_at is None:
            row.answered_at = now

    async def forget_old_tokens(self, now: int) -> None:
        for row in self._rows.values():
            if row.credit is not None and (row.credit.sealed_until or now) < now:
                row.credit = row.credit._replace(sealed=None, sealed_until=None)

    async def list_unsettled(self, before: int, after: tuple[int, bytes] = FIRST) -> list[UnsettledPayment]:
        rows = [row for row in self._rows.values() if row.settled_at is None and row.begun.begun_at < before]
        rows = [row for row in rows if _place_of(row) > after]
        rows.sort(key=_place_of)
        return [
            UnsettledPayment(*row.begun[:6], row.begun.begun_at, row.begun.begun_block, row.tx_hash)
            for row in rows[:MOST_LISTED]
        ]

    async def list_payment_cases(self, now: int) -> list[ReviewCase]:
        rows = self._rows.values()
        found = (show_payment_case(self._show(row), row.begun.payer, row.begun.amount, now) for row in rows)
        return sorted((case for case in found if case is not None), key=lambda case: case.at)

    async def measure_backlog(self, now: int) -> PaymentBacklog:
        begun = [row.begun.begun_at for row in self._rows.values() if row.settled_at is None]
        return PaymentBacklog(len(begun), min(begun, default=None), len(await self.list_payment_cases(now)))

    def _find_unsettled(self, payload: bytes) -> _PaymentRow | None:
        row = self._rows.get(payload)
        return row if row is not None and row.settled_at is None else None

    def _show(self, row: _PaymentRow) -> StoredPayment:
        begun, credit = row.begun, row.credit
        return StoredPayment(
            begun.payload,
            begun.request,
            "settling" if row.settled_at is None else "settled",
            row.tx_hash,
            begun.claim,
            credit.token if credit else None,
            credit.credits if credit else None,
            credit.sealed if credit else None,
            credit.sealed_until if credit else None,
            begun.begun_at,
            row.settled_at,
            begun.begun_block,
            row.answered_at,
            credit is not None and self._is_used(credit.token),
        )

    def _is_used(self, token: str) -> bool:
        account = self._books.accounts[self._books.tokens[token].account]
        return account.debits + account.pending > 0


def _place_of(row: _PaymentRow) -> tuple[int, bytes]:
    return row.begun.begun_at, row.begun.payload
