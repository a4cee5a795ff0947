"""Makes statements: every change to the credits of one account, newest first.

Tools read a statement through `Statements`, whose values have times and receipts; those of
the ledger have its places. Over all pages, the credits of the entries add up to what the
account can spend now. The entry of a call is negative. A call that was charged and then
reversed has two entries, so that a statement read earlier stays true.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple, Protocol

from toolserver.errors import NotFound
from toolserver.money.ledger.state import ISSUED, Hold, LedgerState, LedgerTransfer, State

EntryKind = Literal[
    "purchase",
    "top_up",
    "grant",
    "credit",
    "call",
    "reversal",
    "refund",
    "taken_back",
    "withheld",
    "released",
    "earlier_calls",
]
CallState = Literal["open", "posted", "voided", "reversed"]


class StatementLine(NamedTuple):
    """One movement of credits. `credits` is the change of the spendable credits.

    A call has its id, endpoint, state, receipt, why nothing was charged, and the id of the
    allowance that made it. `transaction` is the payment for credits.
    """

    at: datetime
    kind: EntryKind
    credits: int
    call_id: str | None
    endpoint: str | None
    state: CallState | None
    reason: str | None
    receipt_id: str | None
    transaction: str | None
    allowance: str | None = None


class AccountPayment(NamedTuple):
    """One transfer of USDC that is the account's, as the book of the chain has it. `amount` is in 0.000001 USDC,
    negative if it was paid back; `state` and `way` are words of that book, and it is in the state since `since`.
    """

    at: datetime
    amount: int
    way: str
    state: str
    since: datetime
    transaction: str


class StatementLines(NamedTuple):
    """A part of a statement, latest first. Pass `cursor` to continue; None means that there is nothing older.

    `payments` come with the first part: those of the same time on the chain, whatever became of them, latest first.
    """

    credits: int
    lines: list[StatementLine]
    cursor: str | None
    payments: Sequence[AccountPayment] = ()


class StatementRange(NamedTuple):
    """The requested part of a statement: a half-open time span, the previous page's cursor, the number of lines."""

    since: datetime | None
    until: datetime | None
    cursor: str | None
    limit: int


class Statements(Protocol):
    """Reads statements. Tools know nothing else about the ledger."""

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Return a part of a token's statement. Raise PaymentRequired, or NotFound if statements are not available."""
        ...


class NoStatements:
    """The replacement in a service without its own ledger."""

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Raise NotFound."""
        raise NotFound("This server has no statements: its ledger belongs to another service.")


_CAUSES: tuple[tuple[str, EntryKind], ...] = (
    ("eip155:", "purchase"),
    ("x402:", "top_up"),
    ("grant:", "grant"),
    ("released:", "released"),
)
_TAKEN: tuple[tuple[str, EntryKind], ...] = (("refund:", "refund"), ("held:", "withheld"))


class LedgerEntry(NamedTuple):
    """One movement. `credits` is the change in spendable credits, `seq` its place, and `at` is in epoch milliseconds.

    For a call it has `call_id`, `endpoint`, `state`, and in `reason` why nothing was charged.
    `cause` says why credits were added or taken away. `allowance` is the one that made a
    call; None means the token itself.
    """

    seq: int
    at: int
    kind: EntryKind
    credits: int
    call_id: str | None = None
    endpoint: str | None = None
    state: State | None = None
    reason: str | None = None
    cause: str | None = None
    allowance: str | None = None


class StatementQuery(NamedTuple):
    """The entries to read: from `since` to before `until` (epoch ms), before place `before`, at most `limit`."""

    since: int = 0
    until: int = 2**62
    before: int = 2**62
    limit: int = 100


class StatementPage(NamedTuple):
    """Some entries, newest first, and the `before` of the next page (None at the end). `credits` can be spent now."""

    entries: list[LedgerEntry]
    next_before: int | None
    credits: int


def make_page(candidates: Iterable[LedgerEntry], query: StatementQuery, credits: int) -> StatementPage:
    """Return a page of entries, given in any order. They must include the last `query.limit` + 1 of each kind."""
    entries = sorted(candidates, reverse=True)[: query.limit + 1]
    more = len(entries) > query.limit
    shown = entries[: query.limit]
    return StatementPage(shown, shown[-1].seq if more else None, credits)


def show_call(hold: Hold, seq: int, at: int) -> LedgerEntry:
    """Return the entry of a call, at the transfer that reserved its credits. A voided call changed nothing."""
    credits = 0 if hold.state == "voided" else -hold.credits
    reason = hold.reason if hold.state == "voided" else None
    return LedgerEntry(seq, at, "call", credits, hold.call_id, hold.endpoint, hold.state, reason, None, hold.allowance)


def show_reversal(hold: Hold, seq: int, at: int) -> LedgerEntry:
    """Return the entry of a charge that was given back."""
    return LedgerEntry(
        seq,
        at,
        "reversal",
        hold.credits,
        call_id=hold.call_id,
        endpoint=hold.endpoint,
        state=hold.state,
        reason=hold.reason,
        allowance=hold.allowance,
    )


def show_income(seq: int, at: int, amount: int, cause: str | None) -> LedgerEntry:
    """Return the entry of credits that were added to an account."""
    return LedgerEntry(seq, at, _kind_of(cause, _CAUSES, "credit"), amount, cause=cause)


def show_taken(seq: int, at: int, amount: int, cause: str | None) -> LedgerEntry:
    """Return the entry of credits that were taken from an account for a reason other than a call."""
    return LedgerEntry(seq, at, _kind_of(cause, _TAKEN, "taken_back"), -amount, cause=cause)


def show_removed(at: int, used: int, allowance: str | None) -> LedgerEntry:
    """Return the entry of all calls whose rows were archived and removed: the last of a statement."""
    return LedgerEntry(0, at, "earlier_calls", -used, allowance=allowance)


def _kind_of(cause: str | None, kinds: Iterable[tuple[str, EntryKind]], otherwise: EntryKind) -> EntryKind:
    return next((kind for start, kind in kinds if (cause or "").startswith(start)), otherwise)


def read_statement(books: LedgerState, key: str, query: StatementQuery) -> StatementPage:
    """Return the statement of an account whose whole state is in memory. Raises invalid_token."""
    account, allowance = books.accounts[books.payer(key).account], books.find_allowance(key)
    candidates = (entry for entry in _list_entries(books, account.id) if query.since <= entry.at < query.until)
    if allowance is not None:
        candidates = (entry for entry in candidates if entry.allowance == allowance.id)
    entries = islice((entry for entry in candidates if entry.seq < query.before), query.limit + 1)
    return make_page(entries, query, books.find_spendable(account, key))


def _list_entries(books: LedgerState, account: int) -> Iterator[LedgerEntry]:
    by_transfer = {hold.transfer: hold for hold in books.holds.values()}
    for transfer in reversed(books.transfers):
        entry = _show_transfer(transfer, account, by_transfer)
        if entry is not None:
            yield entry


def _show_transfer(transfer: LedgerTransfer, account: int, holds: dict[int, Hold]) -> LedgerEntry | None:
    """Return the entry for a transfer, or None if it is of another account or only settles a call."""
    if transfer.debit == account and transfer.resolves is None:
        if transfer.credit == ISSUED:
            return show_taken(transfer.seq, transfer.at, transfer.amount, transfer.cause)
        return show_call(holds[transfer.seq], transfer.seq, transfer.at)
    if transfer.credit == account:
        if transfer.resolves is not None:
            return show_reversal(holds[transfer.resolves], transfer.seq, transfer.at)
        return show_income(transfer.seq, transfer.at, transfer.amount, transfer.cause)
    return None
