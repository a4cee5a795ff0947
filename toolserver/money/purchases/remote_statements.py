"""Reads statements of a followed ledger from its owner, with the caller's own token, as the caller could."""

from datetime import datetime
from urllib.parse import urlencode

import msgspec

from toolserver.core.account_statement import CallState, EntryKind, StatementLine, StatementLines, StatementRange
from toolserver.core.models import iso_ms
from toolserver.money.purchases.remote import ASK_S, RemotePurchases, read_answer

PATH = "/api/payment/statement"


class _Line(msgspec.Struct):
    at: datetime
    kind: EntryKind
    credits: int
    call_id: str | None
    endpoint: str | None
    state: CallState | None
    receipt_id: str | None
    no_charge_reason: str | None
    transaction: str | None
    allowance: str | None = None


class _Part(msgspec.Struct):
    credits: int
    entries: list[_Line]
    next_cursor: str | None


class RemoteStatements:
    """Returns the statements of the service that sells."""

    def __init__(self, desk: RemotePurchases) -> None:
        self._desk = desk

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Return a page of a token's statement. Raises PaymentRequired; NotFound if the owner offers no statements."""
        parameters = {
            "from": None if wanted.since is None else iso_ms(wanted.since.timestamp()),
            "to": None if wanted.until is None else iso_ms(wanted.until.timestamp()),
            "cursor": wanted.cursor,
            "limit": str(wanted.limit),
        }
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        headers = {"authorization": f"Bearer {token}"}
        page = read_answer(await self._desk.pass_on("GET", f"{PATH}?{query}", None, headers, ASK_S), _Part)
        return StatementLines(page.credits, [_line_of(entry) for entry in page.entries], page.next_cursor)


def _line_of(entry: _Line) -> StatementLine:
    return StatementLine(
        entry.at,
        entry.kind,
        entry.credits,
        entry.call_id,
        entry.endpoint,
        entry.state,
        entry.no_charge_reason,
        entry.receipt_id,
        entry.transaction,
        entry.allowance,
    )
