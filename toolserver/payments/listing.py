"""Purchases as an operator sees them: what was quoted and what became of it. No memo, no token: neither is stored."""

import sqlite3
from typing import Any

_PURCHASES = """
    SELECT p.id, p.state, coalesce(c.amount, p.amount) AS amount, coalesce(c.credits, p.credits) AS credits,
    p.address, p.created_at AS created, p.expires_at AS expires, c.tx_hash AS tx
    FROM purchase p LEFT JOIN tx_credit c ON c.purchase = p.id
    WHERE :state IS NULL OR p.state = :state ORDER BY p.id DESC LIMIT :limit"""


def purchases(db: sqlite3.Connection, state: str | None, limit: int) -> list[dict[str, Any]]:
    """The last purchases, newest first: a job for `snapshot`. Amounts in 0.000001 USDC, times in milliseconds.

    Amount and credits are what was quoted, and what was paid and bought once it is credited.
    """
    cursor = db.execute(_PURCHASES, {"state": state, "limit": limit})
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
