"""The invariants of the ledger, each as a query that looks for rows that violate it.

The queries share no code with the rules that wrote the rows, so that a fault in one of them shows in the other.
"""

import sqlite3
from typing import NamedTuple

SHOWN = 5  # violations named for each rule

_LATER = """later AS (
  SELECT resolves AS seq, sum(kind='post') AS posts, sum(kind='void') AS voids, sum(kind='reverse') AS reverses
  FROM transfer WHERE resolves IS NOT NULL GROUP BY resolves)"""

_FOLD = """fold AS (
  SELECT account, sum(credits) AS credits, sum(debits) AS debits, sum(pending) AS pending FROM (
    SELECT credit AS account, amount AS credits, 0 AS debits, 0 AS pending
    FROM transfer WHERE kind IN ('posted', 'post', 'reverse')
    UNION ALL
    SELECT debit, 0, iif(kind IN ('posted', 'post', 'reverse'), amount, 0),
           CASE kind WHEN 'pending' THEN amount WHEN 'post' THEN -amount WHEN 'void' THEN -amount ELSE 0 END
    FROM transfer)
  GROUP BY account)"""

RULES = {
    "no transfer is missing": """
        SELECT 'the last is number ' || max(seq) || ', there are ' || count(*) FROM transfer
        HAVING max(seq) <> count(*)""",
    "debits equal credits": """
        SELECT 'token accounts hold ' || held || ', our own say ' || owed FROM (SELECT
          (SELECT coalesce(sum(credits - debits), 0) FROM account WHERE kind='token') AS held,
          (SELECT coalesce(sum(amount * ((debit IN own) - (credit IN own))), 0)
           FROM transfer WHERE kind IN ('posted', 'post', 'reverse')) AS owed)
        WHERE held <> owed""",
    "an account is the sum of its transfers": f"""
        WITH {_FOLD} SELECT 'account ' || a.id FROM account a LEFT JOIN fold f ON f.account = a.id
        WHERE a.kind='token' AND (a.credits, a.debits, a.pending)
          IS NOT (coalesce(f.credits, 0), coalesce(f.debits, 0), coalesce(f.pending, 0))""",
    "no account is overdrawn": """
        SELECT 'account ' || id FROM account WHERE debits + pending > credits OR debits < 0 OR pending < 0""",
    "a transfer is settled at most once": f"""
        WITH {_LATER} SELECT 'transfer ' || seq FROM later WHERE posts + voids > 1 OR reverses > 1""",
    "a settlement moves what was set aside": """
        SELECT 'transfer ' || t.seq FROM transfer t LEFT JOIN transfer f ON f.seq = t.resolves
        WHERE t.kind IN ('post', 'void', 'reverse') AND NOT coalesce(
          t.amount = f.amount AND f.seq < t.seq AND CASE t.kind
            WHEN 'reverse' THEN f.kind IN ('posted', 'pending') AND (t.debit, t.credit) = (f.credit, f.debit)
            ELSE f.kind = 'pending' AND (t.debit, t.credit) = (f.debit, f.credit) END, 0)""",
    "a reservation is what its transfers say": f"""
        WITH {_LATER} SELECT r.call_id FROM reservation r LEFT JOIN transfer f ON f.seq = r.transfer
          LEFT JOIN later l ON l.seq = r.transfer
        WHERE NOT coalesce((f.debit, f.amount) = (r.account, r.credits) AND CASE r.state
          WHEN 'open' THEN f.kind = 'pending' AND l.seq IS NULL
          WHEN 'voided' THEN f.kind = 'pending' AND (l.posts, l.voids, l.reverses) = (0, 1, 0)
          WHEN 'posted' THEN iif(f.kind = 'posted', l.seq IS NULL, (l.posts, l.voids, l.reverses) = (1, 0, 0))
          ELSE (l.posts, l.voids, l.reverses) = (f.kind = 'pending', 0, 1) END, 0)""",
    "every charge belongs to one reservation": """
        SELECT 'transfer ' || seq FROM transfer
        WHERE kind IN ('pending', 'posted') AND credit = 2 AND seq NOT IN (SELECT transfer FROM reservation)
        UNION ALL SELECT 'transfer ' || transfer FROM reservation GROUP BY transfer HAVING count(*) > 1""",
    "credits come from a cause": """
        SELECT 'transfer ' || seq FROM transfer
        WHERE iif(kind = 'posted' AND debit = 1, cause IS NULL,
          cause IS NOT NULL AND NOT (kind = 'posted' AND credit = 1))""",
    "a token has one account and an account one token": """
        SELECT 'account ' || a.id FROM account a LEFT JOIN token t ON t.account = a.id
        GROUP BY a.id HAVING count(t.hash) <> (a.kind = 'token')""",
    "an allowance has spent what its calls cost": """
        WITH used AS (
          SELECT r.allowance, sum(r.credits) AS spent, sum(r.credits * (r.day = a.day)) AS today
          FROM reservation r JOIN allowance a ON a.id = r.allowance WHERE r.state IN ('open', 'posted') GROUP BY 1)
        SELECT 'allowance ' || a.id FROM allowance a LEFT JOIN used u ON u.allowance = a.id
        WHERE (a.spent, a.spent_today) IS NOT (coalesce(u.spent, 0), coalesce(u.today, 0))""",
    "an allowance spends its owner's credits": """
        SELECT r.call_id FROM reservation r JOIN allowance a ON a.id = r.allowance JOIN token t ON t.hash = a.parent
        WHERE r.account <> t.account""",
    "no reservation is open past its time": """
        SELECT call_id FROM reservation WHERE state = 'open' AND expires_at <= :now""",
}
_OWN = "(SELECT id FROM account WHERE kind <> 'token')"


class Breach(NamedTuple):
    """A rule that is violated, and where."""

    rule: str
    where: str


class LedgerTotals(NamedTuple):
    """The whole ledger in one line: tokens, credits issued, charged, reserved and left to spend, and transfers."""

    tokens: int
    issued: int
    charged: int
    held: int
    spendable: int
    transfers: int


def find_breaches(db: sqlite3.Connection, now_ms: int) -> list[Breach]:
    """All violations, at most `SHOWN` for each rule, and what SQLite itself finds wrong with the file."""
    found = [Breach("the file is sound", text) for (text,) in db.execute(f"PRAGMA integrity_check({SHOWN})")]
    found = [breach for breach in found if breach.where != "ok"]
    found += [Breach("references lead somewhere", f"{r[0]} to {r[2]}") for r in db.execute("PRAGMA foreign_key_check")]
    for rule, sql in RULES.items():
        rows = db.execute(f"{sql.replace('IN own', f'IN {_OWN}')} LIMIT {SHOWN}", {"now": now_ms})
        found += [Breach(rule, str(row[0])) for row in rows]
    return found


def read_totals(db: sqlite3.Connection) -> LedgerTotals:
    """The totals over all accounts and transfers."""
    tokens, held, spendable = db.execute(
        """SELECT count(*), coalesce(sum(pending), 0), coalesce(sum(credits - debits - pending), 0)
           FROM account WHERE kind='token'"""
    ).fetchone()
    issued, charged, transfers = db.execute(
        """SELECT coalesce(sum(amount * ((debit = 1) - (credit = 1))), 0),
                  coalesce(sum(CASE WHEN kind IN ('posted', 'post') AND credit = 2 THEN amount
                                    WHEN kind = 'reverse' AND debit = 2 THEN -amount ELSE 0 END), 0),
                  count(*) FROM transfer"""
    ).fetchone()
    return LedgerTotals(tokens, issued, charged, held, spendable, transfers)


def find_problems(db: sqlite3.Connection) -> list[str]:
    """The violations in a backup as text. Reservations of any age may be open in it."""
    return [f"{breach.rule}: {breach.where}" for breach in find_breaches(db, 0)]
