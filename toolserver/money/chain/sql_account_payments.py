"""Reads the payments of one account from the book of the chain: all money that is known to be the account's.

These are the transfers to the addresses of its purchases and top-ups, whatever became of them, its payments by x402
that bought credits, and what was paid back to it. Amounts are in 0.000001 USDC, times are epoch milliseconds.
"""

from datetime import UTC, datetime
from functools import partial

from toolserver.money.chain.sql_chain_transfers import BookedMovement, find_movements, find_received
from toolserver.money.ledger.statements import AccountPayment, StatementQuery
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit

MOST = 500  # payments in one answer, the latest

_OWNER = "SELECT hash, account FROM token WHERE hash = :key OR successor = :key"
_TRANSFERS = """SELECT p.address FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.token = :token AND p.hd_index IS NOT NULL
  UNION SELECT p.address FROM tx_reversal r JOIN purchase p ON p.id = r.purchase
  WHERE r.token = :token AND p.hd_index IS NOT NULL
  UNION SELECT p.address FROM quote_topup q JOIN purchase p ON p.memo_hash = q.memo_hash
  WHERE q.token = :token AND p.hd_index IS NOT NULL"""
_SHARED = """SELECT c.tx_hash, p.address, c.amount FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.token = :token AND p.hd_index IS NULL"""
_SIGNED = """SELECT coalesce(c.tx_hash, p.tx_hash), p.authorizer, p.amount FROM x402_payment p
  LEFT JOIN x402_confirmation c ON c.payload = p.payload WHERE p.token = :token AND p.tx_hash IS NOT NULL"""
_REFUNDS = "SELECT tx_hash, payee, amount FROM refund WHERE token = :token AND tx_hash IS NOT NULL"


class AccountPayments:
    """The payments of accounts whose ledger is in a file."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def list_own(self, key: str, query: StatementQuery) -> list[AccountPayment]:
        """Return the latest payments of a token's account in blocks of the query's time, the latest first.

        `key` is the SHA-256 (hex) of the token. An allowance has none of its own. Raises StorageFailed.
        """
        movements: list[BookedMovement] = await self._file.read(partial(list_own, key, query))
        return [_show(each) for each in movements]


def list_own(key: str, query: StatementQuery, db: SqlConnection) -> list[BookedMovement]:
    owner = db.execute(_OWNER, {"key": key}).fetchone()
    if owner is None:
        return []
    token = {"token": owner[0]}
    addresses = [bytes(address) for (address,) in db.execute(_TRANSFERS, token)]
    terms = {
        (bytes(tx), bytes(side), amount)
        for sql in (_SHARED, _SIGNED, _REFUNDS)
        for tx, side, amount in db.execute(sql, token)
    }
    of_transactions = find_movements(db, [tx for tx, _, _ in terms])
    found = {each.id: each for each in find_received(db, addresses)}
    for movements in of_transactions.values():
        found |= {each.id: each for each in movements if _is_among(each, terms)}
    within = [each for each in found.values() if query.since <= each.at < query.until]
    return sorted(within, key=lambda each: (each.block, each.id), reverse=True)[:MOST]


def _is_among(each: BookedMovement, terms: set[tuple[bytes, bytes, int]]) -> bool:
    """Return True for a transfer of these terms: its transaction, the account or address that names it, its amount."""
    amount = each.received or each.sent
    return bool({(each.tx_hash, side, amount) for side in (each.payer, each.payee)} & terms)


def _show(each: BookedMovement) -> AccountPayment:
    changed = each.history[-1].at if each.history else each.at
    return AccountPayment(
        datetime.fromtimestamp(each.at / 1000, UTC),
        each.received or -each.sent,
        each.way,
        each.state,
        datetime.fromtimestamp(changed / 1000, UTC),
        f"0x{each.tx_hash.hex()}",
    )
