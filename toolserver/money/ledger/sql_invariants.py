"""Checks the invariants of the ledger, each with a query for rows that violate it.

The queries share no code with the rules that wrote the rows, so that a bug in one shows up in the other.
"""

from typing import NamedTuple

from toolserver.money.ledger.sql_removed import read_horizon, read_removed
from toolserver.sql.connection import SqlConnection, is_shared
from toolserver.sql.sealed_file import find_damage

SHOWN = 5  # violations named for each rule

_LATER = """later AS (
  SELECT resolves AS seq, count(*) FILTER (WHERE kind='post') AS posts, count(*) FILTER (WHERE kind='void') AS voids,
    count(*) FILTER (WHERE kind='reverse') AS reverses
  FROM transfer WHERE resolves IS NOT NULL GROUP BY resolves)"""

_FOLD = """fold AS (
  SELECT account, sum(credits) AS credits, sum(debits) AS debits, sum(pending) AS pending FROM (
    SELECT credit AS account, amount AS credits, 0 AS debits, 0 AS pending
    FROM transfer WHERE kind IN ('posted', 'post', 'reverse')
    UNION ALL
    SELECT debit, 0, CASE WHEN kind IN ('posted', 'post', 'reverse') THEN amount ELSE 0 END,
           CASE kind WHEN 'pending' THEN amount WHEN 'post' THEN -amount WHEN 'void' THEN -amount ELSE 0 END
    FROM transfer
    UNION ALL
    SELECT account, credits, debits, 0 FROM removed_calls) AS moves
  GROUP BY account)"""

_OWN = "(SELECT id FROM account WHERE kind <> 'token')"

RULES = {
    "debits equal credits": f"""
        SELECT 'token accounts hold ' || held || ', our own say ' || owed FROM (SELECT
          (SELECT coalesce(sum(credits - debits), 0) FROM account WHERE kind='token') AS held,
          (SELECT coalesce(sum(CASE WHEN debit IN {_OWN} THEN amount ELSE 0 END
             - CASE WHEN credit IN {_OWN} THEN amount ELSE 0 END), 0)
           FROM transfer WHERE kind IN ('posted', 'post', 'reverse'))
          + (SELECT coalesce(sum(credits - debits), 0) FROM removed_calls) AS owed) AS both_sides
        WHERE held <> owed""",
    "an account is the sum of its transfers": f"""
        WITH {_FOLD} SELECT 'account ' || a.id FROM account a LEFT JOIN fold f ON f.account = a.id
        WHERE a.kind='token' AND (a.credits, a.debits, a.pending)
          <> (coalesce(f.credits, 0), coalesce(f.debits, 0), coalesce(f.pending, 0))""",
    "no account is overdrawn": """
        SELECT 'account ' || id FROM account WHERE debits + pending > credits OR debits < 0 OR pending < 0""",
    "a transfer is settled at most once": f"""
        WITH {_LATER} SELECT 'transfer ' || seq FROM later WHERE posts + voids > 1 OR reverses > 1""",
    "a settlement moves what was set aside": """
        SELECT 'transfer ' || t.seq FROM transfer t LEFT JOIN transfer f ON f.seq = t.resolves
        WHERE t.kind IN ('post', 'void', 'reverse') AND NOT coalesce(
          t.amount = f.amount AND f.seq < t.seq AND CASE t.kind
            WHEN 'reverse' THEN f.kind IN ('posted', 'pending') AND (t.debit, t.credit) = (f.credit, f.debit)
            ELSE f.kind = 'pending' AND (t.debit, t.credit) = (f.debit, f.credit) END, FALSE)""",
    "a reservation is what its transfers say": f"""
        WITH {_LATER} SELECT r.call_id FROM reservation r LEFT JOIN transfer f ON f.seq = r.transfer
          LEFT JOIN later l ON l.seq = r.transfer
        WHERE NOT coalesce((f.debit, f.amount) = (r.account, r.credits) AND CASE r.state
          WHEN 'open' THEN f.kind = 'pending' AND l.seq IS NULL
          WHEN 'voided' THEN f.kind = 'pending' AND (l.posts, l.voids, l.reverses) = (0, 1, 0)
          WHEN 'posted' THEN CASE WHEN f.kind = 'posted' THEN l.seq IS NULL
            ELSE (l.posts, l.voids, l.reverses) = (1, 0, 0) END
          ELSE (l.posts, l.voids, l.reverses) = (CASE WHEN f.kind = 'pending' THEN 1 ELSE 0 END, 0, 1) END, FALSE)""",
    "every charge belongs to one reservation": """
        SELECT 'transfer ' || seq FROM (
          SELECT seq FROM transfer WHERE kind IN ('pending', 'posted') AND credit = 2
          EXCEPT SELECT transfer FROM reservation) AS unreserved
        UNION ALL SELECT 'transfer ' || transfer FROM reservation GROUP BY transfer HAVING count(*) > 1""",
    "credits come from a cause": """
        SELECT 'transfer ' || seq FROM transfer
        WHERE CASE WHEN kind = 'posted' AND debit = 1 THEN cause IS NULL
          ELSE cause IS NOT NULL AND NOT (kind = 'posted' AND credit = 1) END""",
    "a token has one account and an account one token": """
        SELECT 'account ' || a.id FROM account a LEFT JOIN token t ON t.account = a.id
        GROUP BY a.id HAVING count(t.hash) <> CASE WHEN a.kind = 'token' THEN 1 ELSE 0 END""",
    "an allowance has spent what its calls cost": """
        WITH used AS (
          SELECT r.allowance, sum(r.credits) AS spent, sum(r.credits) FILTER (WHERE r.day = a.day) AS today
          FROM reservation r JOIN allowance a ON a.id = r.allowance WHERE r.state IN ('open', 'posted') GROUP BY 1),
        gone AS (SELECT allowance, sum(debits - credits) AS spent FROM removed_calls GROUP BY 1)
        SELECT 'allowance ' || a.id FROM allowance a LEFT JOIN used u ON u.allowance = a.id
          LEFT JOIN gone g ON g.allowance = a.id
        WHERE a.spent <> coalesce(u.spent, 0) + coalesce(g.spent, 0)
          OR (a.spent_today <> coalesce(u.today, 0) AND a.day * 86400000 >= :horizon)""",
    "an allowance spends its owner's credits": """
        SELECT r.call_id FROM reservation r JOIN allowance a ON a.id = r.allowance JOIN token t ON t.hash = a.parent
        WHERE r.account <> t.account""",
    "a token with limits has spent today what its calls of the day cost": """
        WITH used AS (
          SELECT r.account, sum(r.credits) AS today FROM reservation r JOIN owner_limits l ON l.account = r.account
          WHERE r.state IN ('open', 'posted') AND r.day = l.day GROUP BY 1)
        SELECT 'account ' || l.account FROM owner_limits l LEFT JOIN used u ON u.account = l.account
        WHERE l.spent_today <> coalesce(u.today, 0) AND l.day * 86400000 >= :horizon""",
    "no reservation is open past its time": """
        SELECT call_id FROM reservation WHERE state = 'open' AND expires_at <= :now""",
    "a closed month keeps its transfers": """
        SELECT 'closed months had ' || closed || ', there are ' || there FROM (
          SELECT (SELECT coalesce(sum(transfers), 0) FROM closed_month) AS closed,
            (SELECT count(*) FROM transfer WHERE at < (SELECT max(until) FROM closed_month))
            + (SELECT coalesce(sum(transfers), 0) FROM removed_calls) AS there) AS counts
        WHERE closed <> there""",
}
# A file numbers its transfers without a gap. A server that instances share gives them out in blocks, and for the sake
# of speed does not itself see that the accounts of a transfer exist.
RULES_OF_FILE = {
    "no transfer is missing": """
        SELECT 'the last is number ' || last || ', there are ' || there FROM (SELECT max(seq) AS last,
            count(*) + (SELECT coalesce(sum(transfers), 0) FROM removed_calls) AS there FROM transfer)
        WHERE last <> there""",
}
RULES_OF_SERVER = {
    "references lead somewhere": """
        SELECT 'transfer ' || t.seq || ' to account' FROM transfer t LEFT JOIN account d ON d.id = t.debit
          LEFT JOIN account c ON c.id = t.credit WHERE d.id IS NULL OR c.id IS NULL""",
}


class Breach(NamedTuple):
    """A rule that is violated, and where."""

    rule: str
    where: str


class LedgerTotals(NamedTuple):
    """The whole ledger in one line: tokens, credits issued, charged, reserved and left to spend, and transfers.

    It includes calls whose rows were removed.
    """

    tokens: int
    issued: int
    charged: int
    held: int
    spendable: int
    transfers: int


def find_breaches(db: SqlConnection, now_ms: int) -> list[Breach]:
    """Return all violations, at most `SHOWN` for each rule, and the damage that SQLite finds in a file."""
    breaches = [] if is_shared(db) else [Breach(*damage) for damage in find_damage(db, SHOWN)]
    rules = RULES | (RULES_OF_SERVER if is_shared(db) else RULES_OF_FILE)
    times = {"now": now_ms, "horizon": read_horizon(db)}
    for rule, sql in rules.items():
        breaches += [Breach(rule, str(row[0])) for row in db.execute(f"{sql} LIMIT {SHOWN}", times)]
    return breaches


def read_totals(db: SqlConnection) -> LedgerTotals:
    """Return the totals over all accounts and transfers."""
    tokens, held, spendable = db.execute(
        """SELECT count(*), coalesce(sum(pending), 0), coalesce(sum(credits - debits - pending), 0)
           FROM account WHERE kind='token'"""
    ).fetchone()
    issued, charged, transfers = db.execute(
        """SELECT coalesce(sum(CASE WHEN debit = 1 THEN amount WHEN credit = 1 THEN -amount ELSE 0 END), 0),
                  coalesce(sum(CASE WHEN kind IN ('posted', 'post') AND credit = 2 THEN amount
                                    WHEN kind = 'reverse' AND debit = 2 THEN -amount ELSE 0 END), 0),
                  count(*) FROM transfer"""
    ).fetchone()
    removed = read_removed(db)
    return LedgerTotals(tokens, issued, charged + removed.used, held, spendable, transfers + removed.transfers)


def find_problems(db: SqlConnection) -> list[str]:
    """Return the violations in a backup as text. In a backup, open reservations may be of any age."""
    return [f"{breach.rule}: {breach.where}" for breach in find_breaches(db, 0)]
