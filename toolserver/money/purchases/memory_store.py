"""Keeps purchases in memory, beside a ledger in memory: for tests, and as the reference for what a store has to do."""

from dataclasses import dataclass

from toolserver.money.ledger.operations import LedgerState
from toolserver.money.ledger.state import Account
from toolserver.money.purchases.listing import ListedPurchase, ReviewCase
from toolserver.money.purchases.records import (
    PAYMENT_UNDONE,
    AddressInUse,
    BlockUpdate,
    CreditFacts,
    CreditReversal,
    Purchase,
    PurchaseDraft,
    StoredCredit,
    TakeBack,
    TransferCredit,
    UnappliedPayment,
    decide_credit,
)


@dataclass(slots=True)
class _CreditRow:
    given: TransferCredit
    credits: int
    block: BlockUpdate
    sealed: bytes | None
    sealed_until: int | None
    missing_since: int | None = None


class MemoryPurchaseStore:
    """See PurchaseStore. `books` is the state of the ledger in memory whose tokens are funded."""

    def __init__(self, books: LedgerState) -> None:
        self._books = books
        self._drafts: list[PurchaseDraft] = []  # the id of a purchase is its place here, counted from 1
        self._states: dict[int, Purchase] = {}
        self._aside: set[int] = set()
        self._credits: dict[bytes, _CreditRow] = {}
        self._reversals: list[tuple[_CreditRow, CreditReversal, int]] = []
        self._unapplied: dict[tuple[bytes, int], UnappliedPayment] = {}

    async def find_next_index(self) -> int:
        return max((d.hd_index + 1 for d in self._drafts if d.hd_index is not None), default=0)

    async def set_aside(self, start: int, count: int) -> int:
        return start

    async def add_quote(self, draft: PurchaseDraft) -> None:
        for known in self._drafts:
            own = known.hd_index is not None and draft.hd_index is not None
            if known.memo_hash == draft.memo_hash or (
                own and (known.hd_index == draft.hd_index or known.address == draft.address)
            ):
                raise AddressInUse(f"index {draft.hd_index}")
        self._drafts.append(draft)
        id, (_, address, index, amount, _, challenge, created_at, expires_at) = len(self._drafts), draft
        self._states[id] = Purchase(id, address, index, amount, challenge, "quoted", created_at, expires_at)

    async def find_purchase(self, memo_hash: bytes) -> Purchase | None:
        found = next((id for id, draft in enumerate(self._drafts, 1) if draft.memo_hash == memo_hash), None)
        if found is None:
            return None
        self._aside.discard(found)
        return self._states[found]

    async def put_quotes_aside(self, before: int, most: int) -> int:
        paid = {purchase for _, purchase in self._unapplied}
        unpaid = (one for one in self._states.values() if one.state == "quoted" and one.id not in paid | self._aside)
        old = [one.id for one in unpaid if one.expires_at < before][:most]
        self._aside.update(old)
        return len(old)

    async def find_credit(self, purchase: int) -> StoredCredit | None:
        return next((self._show(row) for row in self._credits.values() if row.given.purchase == purchase), None)

    async def credit_transfer(self, given: TransferCredit) -> int:
        purchase = self._states[given.purchase]
        undone = [lost for row, (_, lost), _ in self._reversals if row.given.purchase == given.purchase]
        owners = {known.address: id for id, known in self._states.items() if known.hd_index is not None}
        used = given.tx_hash in self._credits
        decision = decide_credit(
            given, CreditFacts(purchase.state, purchase.address, used, len(undone), sum(undone), owners)
        )
        self._books.now = given.credited_at
        decision.mint.on(self._books)
        self._states[given.purchase] = purchase._replace(state="credited")
        receipt = given.seen.receipt
        block = BlockUpdate(given.tx_hash, receipt.block_number, receipt.block_hash, given.seen.block_time * 1000, None)
        self._credits[given.tx_hash] = _CreditRow(given, decision.credits, block, given.sealed, given.sealed_until)
        for payment in decision.unapplied:
            await self.record_unapplied(payment)
        return decision.credits

    async def record_unapplied(self, payment: UnappliedPayment) -> None:
        self._unapplied.setdefault((payment.tx_hash, payment.purchase), payment)

    async def is_token_waiting(self, token: str) -> bool:
        return any(row.given.token == token and row.sealed is not None for row in self._credits.values())

    async def forget_token(self, token: str) -> None:
        for row in self._credits.values():
            if row.given.token == token:
                row.sealed = row.sealed_until = None

    async def forget_old_tokens(self, now: int) -> None:
        for row in self._credits.values():
            if row.sealed_until is not None and (row.sealed_until < now or self._is_used(row)):
                row.sealed = row.sealed_until = None

    async def list_watched(self) -> list[StoredCredit]:
        watched = [row for row in self._credits.values() if row.block.final_at is None]
        return [self._show(row) for row in sorted(watched, key=lambda row: row.given.credited_at)]

    async def record_block(self, update: BlockUpdate) -> None:
        if row := self._credits.get(update.tx_hash):
            row.block, row.missing_since = update, None

    async def record_missing(self, tx_hash: bytes, now: int) -> None:
        if (row := self._credits.get(tx_hash)) and row.missing_since is None:
            row.missing_since = now

    async def reverse_credit(self, tx_hash: bytes, now: int) -> CreditReversal:
        row = self._credits.pop(tx_hash, None)
        if row is None:
            return CreditReversal(0, 0)
        self._books.now = now
        taken = TakeBack(row.given.token, row.credits, PAYMENT_UNDONE).on(self._books)
        reversal = CreditReversal(taken, row.credits - taken)
        self._reversals.append((row, reversal, now))
        id = row.given.purchase
        self._states[id] = self._states[id]._replace(state="reorged")
        return reversal

    async def list_deposits(self) -> list[tuple[int, bytes]]:
        return sorted((known.hd_index, known.address) for known in self._drafts if known.hd_index is not None)

    async def list_purchases(self, state: str | None, limit: int) -> list[ListedPurchase]:
        credits = {row.given.purchase: row for row in self._credits.values()}
        listed = [self._list(id, credits.get(id)) for id in reversed(self._states) if id not in self._aside]
        return [one for one in listed if state in (None, one.state)][:limit]

    async def list_cases(self) -> list[ReviewCase]:
        cases: list[ReviewCase] = []
        for (tx, id), (_, _, amount, reason, at) in self._unapplied.items():
            if tx not in self._credits or self._credits[tx].given.purchase != id:
                cases.append(ReviewCase("unapplied", tx, self._states[id].address, amount, reason, None, at))
        for row, (_, lost), at in self._reversals:
            wallet = self._states[row.given.purchase].address
            cases.append(ReviewCase("undone", row.given.tx_hash, wallet, row.given.paid.amount, None, lost, at))
        return sorted(cases, key=lambda case: case.at)

    def _list(self, id: int, credit: _CreditRow | None) -> ListedPurchase:
        draft, state = self._drafts[id - 1], self._states[id].state
        amount, credits = (credit.given.paid.amount, credit.credits) if credit else (draft.amount, draft.credits)
        tx = credit.given.tx_hash if credit else None
        return ListedPurchase(id, state, amount, credits, draft.address, draft.created_at, draft.expires_at, tx)

    def _show(self, row: _CreditRow) -> StoredCredit:
        given, block = row.given, row.block
        return StoredCredit(
            given.tx_hash,
            given.purchase,
            self._states[given.purchase].address,
            given.token,
            block.block_number,
            block.block_hash,
            given.paid.amount,
            row.credits,
            given.late,
            row.sealed,
            row.sealed_until,
            row.missing_since,
            self._is_used(row),
        )

    def _is_used(self, row: _CreditRow) -> bool:
        account: Account = self._books.accounts[self._books.tokens[row.given.token].account]
        return account.debits + account.pending > 0
