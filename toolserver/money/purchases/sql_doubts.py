"""Decides from the stored rows which credited transfers are in doubt, withholds what they bought, and lists them.

A transfer is in doubt while RPC servers disagree about it, and while it is not on the chain.
The functions that take a connection run inside a transaction that their caller opened.
"""

from toolserver.money.ledger.sql_withholding import give_back_credits, read_withheld, withhold_credits
from toolserver.money.purchases.listing import ReviewCase
from toolserver.money.purchases.units import CHAIN_ID
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, read_place

_DOUBT = """SELECT token, credits,
  CASE WHEN missing_since IS NOT NULL OR (disputed_since IS NOT NULL AND agreed_at IS NULL)
    OR EXISTS (SELECT 1 FROM chain_transfer m WHERE m.tx_hash = tx_credit.tx_hash
      GROUP BY m.tx_hash HAVING min(m.state) = 'undone' AND max(m.state) = 'undone')
  THEN 1 ELSE 0 END
  FROM tx_credit WHERE chain_id=? AND tx_hash=?"""
_DISPUTED = """SELECT 'disputed', c.tx_hash, p.address, c.amount, 'RPC servers disagree', c.credits, c.disputed_since
  FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE c.disputed_since IS NOT NULL AND c.agreed_at IS NULL"""
_HELD = """SELECT 'held', r.tx_hash, p.address, r.amount, r.reason, NULL, r.at
  FROM payment_review r JOIN purchase p ON p.id = r.purchase WHERE r.approved_at IS NULL"""


def name_deposit(tx_hash: bytes) -> str:
    """Return the name of a transfer's deposit in the causes of the ledger."""
    return f"eip155:{CHAIN_ID}:0x{tx_hash.hex()}"


def weigh_credit(tx_hash: bytes, now: int, db: SqlConnection) -> None:
    """Withhold what a transfer bought while it is in doubt, and give it back once it is not. `now` is in epoch ms."""
    row = db.execute(_DOUBT, (CHAIN_ID, tx_hash)).fetchone()
    if row is None:
        return
    token, credits, is_doubtful = row
    if is_doubtful:
        withhold_credits(name_deposit(tx_hash), token, credits, now, db)
    else:
        give_back_credits(name_deposit(tx_hash), token, now, db)


def read_review_cases(place: LedgerPlace) -> list[ReviewCase]:
    """Return the stored cases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, list_review_cases)


def list_review_cases(db: SqlConnection) -> list[ReviewCase]:
    """Return the transfers in dispute, with their credits that had been spent, and those that wait for approval."""
    disputed = [ReviewCase(*row) for row in db.execute(_DISPUTED).fetchall()]
    cases = [case._replace(lost=_count_spent(case, db)) for case in disputed]
    return cases + [ReviewCase(*row) for row in db.execute(_HELD)]


def _count_spent(case: ReviewCase, db: SqlConnection) -> int | None:
    withheld = read_withheld(name_deposit(bytes(case.tx or b"")), db).credits
    return ((case.lost or 0) - withheld) or None
