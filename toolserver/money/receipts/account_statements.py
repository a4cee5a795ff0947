"""Makes statements of our own ledger: the movements of an account, each call with the id of its receipt."""

import re
from datetime import UTC, datetime
from typing import Protocol

from toolserver.core.account_statement import StatementLine, StatementLines, StatementRange
from toolserver.money.ledger.protocol import StatementPage, StatementQuery, Who
from toolserver.money.ledger.state import FOREIGN
from toolserver.money.ledger.statements import LedgerEntry
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import receipt_id

_TRANSACTION = re.compile(r"eip155:\d+:(0x[0-9a-f]{64})")


class StatementLedger(Protocol):
    """A ledger that returns pages of an account's movements."""

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        """Return a page of the movements of a token's account. Raises invalid_token."""
        ...


class AccountStatements:
    """Returns statements of a ledger. For this service's own calls they name only receipts stored in `receipts`."""

    def __init__(self, ledger: StatementLedger, receipts: ReceiptService | None) -> None:
        self._ledger, self._receipts = ledger, receipts

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Return a page of a token's statement, also for a revoked token. Raises invalid_token."""
        page = await self._ledger.statement(token, _query_of(wanted))
        receipt_ids = await self._find_receipts(page.entries)
        lines = [_show_line(entry, receipt_ids) for entry in page.entries]
        return StatementLines(page.credits, lines, None if page.next_before is None else f"{page.next_before:016x}")

    async def _find_receipts(self, entries: list[LedgerEntry]) -> set[str]:
        """Return the ids of the receipts that exist. Those of a sister service's calls are stored there, so they are
        assumed to exist.
        """
        ids = {entry.call_id: _receipt_of(entry.call_id) for entry in entries if entry.call_id is not None}
        own = [id for call_id, id in ids.items() if FOREIGN not in call_id]
        foreign = {id for call_id, id in ids.items() if FOREIGN in call_id}
        return foreign | (await self._receipts.list_known(own) if self._receipts else set())


def _query_of(wanted: StatementRange) -> StatementQuery:
    bounds = {
        "since": None if wanted.since is None else int(wanted.since.timestamp() * 1000),
        "until": None if wanted.until is None else int(wanted.until.timestamp() * 1000),
        "before": None if wanted.cursor is None else int(wanted.cursor, 16),
    }
    return StatementQuery(**{name: value for name, value in bounds.items() if value is not None}, limit=wanted.limit)


def _show_line(entry: LedgerEntry, receipt_ids: set[str]) -> StatementLine:
    receipt = None if entry.call_id is None else _receipt_of(entry.call_id)
    transaction = _TRANSACTION.match(entry.cause or "")
    return StatementLine(
        datetime.fromtimestamp(entry.at / 1000, UTC),
        entry.kind,
        entry.credits,
        None if entry.call_id is None else entry.call_id.rpartition(FOREIGN)[2],
        entry.endpoint,
        entry.state,
        entry.reason,
        receipt if receipt in receipt_ids else None,
        None if transaction is None else transaction[1],
        entry.allowance,
    )


def _receipt_of(call_id: str) -> str:
    return receipt_id(call_id.rpartition(FOREIGN)[2])
