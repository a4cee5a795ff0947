"""Locks the accounts that a group of operations may change, where several instances share the ledger.

Only the holder of an account's lock decides about its token, allowances and calls, and it loads their rows after it has
taken the lock. Groups lock accounts in the order of their ids, which rules out deadlocks.
"""

from collections.abc import Sequence

from toolserver.money.ledger.operations import Needs
from toolserver.sql.connection import SqlConnection, lock_rows

# An array is computed once. After a wait for a row, PostgreSQL evaluates the row again, and would drop it from a join
# although it is locked.
_OF_NEEDS = """SELECT id FROM account WHERE id = ANY(ARRAY(
  SELECT account FROM token WHERE hash = ANY(:keys) UNION ALL SELECT account FROM token WHERE ref = ANY(:keys)
  UNION ALL SELECT account FROM token WHERE successor = ANY(:keys)
  UNION ALL SELECT account FROM reservation WHERE call_id = ANY(:calls)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.hash = ANY(:keys)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.ref = ANY(:keys)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.id = ANY(:keys)))"""


def lock_accounts(db: SqlConnection, needs: Sequence[Needs]) -> set[int] | None:
    """Lock the accounts that the operations need, and return their ids, or None if no other process can write."""
    keys = {name for need in needs for name in (need.key, need.allowance) if name is not None}
    calls = {need.call_id for need in needs if need.call_id is not None}
    return lock_rows(db, _OF_NEEDS, {"keys": list(keys), "calls": list(calls)})
