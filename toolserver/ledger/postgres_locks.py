"""Which accounts a group of operations may change, and their locks, where several instances share the ledger.

Whatever is decided about a token, an allowance or a call is decided by who holds the lock of its account, and all that
hangs on the account is loaded after it was locked. Groups lock in the order of ids, so that they wait for each other
in a line and never in a circle.
"""

from collections.abc import Sequence

from toolserver.ledger.operations import Needs
from toolserver.storage.connection import SqlConnection, lock_rows

# An array, which is made once: a row that was waited for is looked at anew, and PostgreSQL would leave it out of a join
# then, although it is locked.
_OF_NEEDS = """SELECT id FROM account WHERE id = ANY(ARRAY(
  SELECT account FROM token WHERE hash = ANY(:keys) UNION ALL SELECT account FROM token WHERE ref = ANY(:keys)
  UNION ALL SELECT account FROM token WHERE successor = ANY(:keys)
  UNION ALL SELECT account FROM reservation WHERE call_id = ANY(:calls)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.hash = ANY(:keys)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.ref = ANY(:keys)
  UNION ALL SELECT t.account FROM token t JOIN allowance a ON a.parent = t.hash WHERE a.id = ANY(:keys)))"""


def lock_accounts(db: SqlConnection, needs: Sequence[Needs]) -> set[int] | None:
    """Lock the accounts that the operations need, and return their ids; None where nobody else can write."""
    keys = {name for need in needs for name in (need.key, need.allowance) if name is not None}
    calls = {need.call_id for need in needs if need.call_id is not None}
    return lock_rows(db, _OF_NEEDS, {"keys": list(keys), "calls": list(calls)})
