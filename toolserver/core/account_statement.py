"""The statement of a token's account, as tools see it: its values, and the protocol of what gives it."""

from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from toolserver.errors import NotFound

EntryKind = Literal[
    "purchase", "top_up", "grant", "credit", "call", "reversal", "refund", "taken_back", "earlier_calls"
]
CallState = Literal["open", "posted", "voided", "reversed"]


class StatementLine(NamedTuple):
    """One movement of credits. `credits` is what it changed of what can be spent.

    Of a call: its id, endpoint, state, receipt, why nothing was charged, and the id of the allowance that made it.
    `transaction` is what paid for credits.
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


class StatementLines(NamedTuple):
    """A part of a statement, the latest first. Give `cursor` to read on; None: there is nothing older."""

    credits: int
    lines: list[StatementLine]
    cursor: str | None


class StatementRange(NamedTuple):
    """Which part of a statement: a half-open span of time, the cursor of the page before, and how many lines."""

    since: datetime | None
    until: datetime | None
    cursor: str | None
    limit: int


class Statements(Protocol):
    """Gives statements. Tools know nothing else of the ledger."""

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """A part of a token's statement. Raises PaymentRequired, NotFound where no statements are given."""
        ...


class NoStatements:
    """What a service without a ledger of its own has instead."""

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Raises NotFound."""
        raise NotFound("This server gives no statements: its ledger belongs to another service.")
