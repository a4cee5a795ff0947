"""Archives unpaid quotes long after they expired. An archived quote takes half the space and can still be claimed.

Every function runs inside a transaction that its caller opened. If a transaction on the chain pays one purchase and
also sends money to the address of an archived quote, that money is not listed as a case; the operator's search of all
deposit addresses finds it.
"""

from toolserver.sql.connection import SqlConnection, insert

_TERMS = "memo_hash, id, address, hd_index, amount, credits, challenge, created_at, expires_at"
_UNTOUCHED = """state = 'quoted' AND expires_at < ?
  AND NOT EXISTS (SELECT 1 FROM unapplied_payment u WHERE u.purchase = purchase.id)
  AND NOT EXISTS (SELECT 1 FROM payment_review r WHERE r.purchase = purchase.id)"""


def put_aside(before: int, most: int, db: SqlConnection) -> int:
    """Archive at most `most` quotes that expired before a time (epoch ms) and for which no payment is recorded.

    Return how many.
    """
    chosen = f"SELECT {_TERMS} FROM purchase WHERE {_UNTOUCHED} ORDER BY expires_at LIMIT ?"
    rows = db.execute(chosen, (before, most)).fetchall()
    insert(db, f"INSERT INTO old_quote({_TERMS}) VALUES", rows)
    for memo_hash, *_ in rows:
        db.execute("DELETE FROM purchase WHERE memo_hash=?", (memo_hash,))
    return len(rows)


def is_aside(memo_hash: bytes, db: SqlConnection) -> bool:
    """Return True if the quote of a memo is archived."""
    return db.execute("SELECT 1 FROM old_quote WHERE memo_hash=?", (memo_hash,)).fetchone() is not None


def bring_back(memo_hash: bytes, db: SqlConnection) -> None:
    """Turn the archived quote of a memo back into a purchase, if there is one."""
    db.execute(
        f"INSERT INTO purchase({_TERMS}, state) SELECT {_TERMS}, 'quoted' FROM old_quote WHERE memo_hash=?",
        (memo_hash,),
    )
    db.execute("DELETE FROM old_quote WHERE memo_hash=?", (memo_hash,))
