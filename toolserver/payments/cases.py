"""What needs a person: money that bought nothing, and credits that were spent before their payment was undone."""

import sqlite3
from typing import Any

_UNAPPLIED = """
    SELECT 'unapplied' AS kind, u.tx_hash AS tx, p.address AS wallet, u.amount, u.reason, NULL AS lost, u.seen_at AS at
    FROM unapplied_payment u JOIN purchase p ON p.id = u.purchase
    WHERE NOT EXISTS (SELECT 1 FROM tx_credit c WHERE c.tx_hash = u.tx_hash AND c.purchase = u.purchase)"""
_UNDONE = """
    SELECT 'undone', r.tx_hash, p.address, r.amount, NULL, r.lost, r.at
    FROM tx_reversal r JOIN purchase p ON p.id = r.purchase"""


def cases(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every case, oldest first: a job for `Durable.read`. Amounts in 0.000001 USDC, times in milliseconds."""
    cursor = db.execute(f"{_UNAPPLIED} UNION ALL {_UNDONE} ORDER BY at")
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    return [row | {"tx": f"0x{row['tx'].hex()}", "wallet": f"0x{row['wallet'].hex()}"} for row in rows]
