"""Defines the statement of a token's account for tools: its values, and the protocol that reads it."""

from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from toolserver.errors import NotFound

EntryKind = Literal[
    "purchase", "top_up", "grant", "credit", "call", "reversal", "refund", "taken_back", "earlier_calls"
]
CallState = Literal["open", "posted", "voided", "reversed"]


class StatementLine(NamedTuple):
    """One movement of credits. `credits` is the change of the spendable credits.

    A call has its id, endpoint, state, receipt, why nothing was charged, and the id of the allowance that made it.
    `transaction` is the payment for credits.
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
    """A part of a statement, latest first. Pass `cursor` to continue; None means that there is nothing older."""

    credits: int
    lines: list[StatementLine]
    cursor: str | None


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
