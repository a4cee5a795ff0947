"""Reads and writes the tables of purchases. Every function runs inside a transaction that its caller opened."""

import json
from typing import Any

from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.purchases.listing import ListedPurchase, ReviewCase
from toolserver.money.purchases.records import (
    PAYMENT_UNDONE,
    AddressInUse,
    BlockUpdate,
    CreditFacts,
    CreditReversal,
    Purchase,
    PurchaseDraft,
    StoredCredit,
    TakeBack,
    TransferCredit,
    UnappliedPayment,
    decide_credit,
    other_transfers,
)
from toolserver.money.purchases.units import CHAIN_ID
from toolserver.sql.connection import SqlConnection, is_shared
from toolserver.sql.errors import ConstraintViolated

_CREDIT = """SELECT c.tx_hash, c.purchase, p.address, c.token, c.block_number, c.block_hash, c.amount, c.credits,
  c.late, c.sealed, c.sealed_until, c.missing_since, a.debits + a.pending > 0
  FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  JOIN token t ON t.hash = c.token JOIN account a ON a.id = t.account WHERE """
_PURCHASES = """
    SELECT p.id, p.state, coalesce(c.amount, p.amount), coalesce(c.credits, p.credits),
    p.address, p.created_at, p.expires_at, c.tx_hash
    FROM purchase p LEFT JOIN tx_credit c ON c.purchase = p.id
    WHERE CAST(:state AS TEXT) IS NULL OR p.state = :state ORDER BY p.id DESC LIMIT :limit"""
_CASES = """
    SELECT 'unapplied', u.tx_hash, p.address, u.amount, u.reason, NULL, u.seen_at AS at
    FROM unapplied_payment u JOIN purchase p ON p.id = u.purchase
    WHERE NOT EXISTS (SELECT 1 FROM tx_credit c WHERE c.tx_hash = u.tx_hash AND c.purchase = u.purchase)
    UNION ALL
    SELECT 'undone', r.tx_hash, p.address, r.amount, NULL, r.lost, r.at
    FROM tx_reversal r JOIN purchase p ON p.id = r.purchase
    ORDER BY at"""


def find_next_index(db: SqlConnection) -> int:
    both = "SELECT max(hd_index) AS most FROM purchase UNION ALL SELECT max(hd_index) FROM old_quote"
    return int(db.execute(f"SELECT coalesce(max(most) + 1, 0) FROM ({both}) AS used").fetchone()[0])


def set_aside(start: int, count: int, db: SqlConnection) -> int:
    if not is_shared(db):
        return start
    sql = """INSERT INTO deposit_number AS mine VALUES(1, CAST(?1 AS bigint) + CAST(?2 AS bigint)) ON CONFLICT(one)
      DO UPDATE SET next = greatest(mine.next + ?2, excluded.next) RETURNING next"""
    return int(db.execute(sql, (start, count)).fetchone()[0]) - count


def add_quote(draft: PurchaseDraft, db: SqlConnection) -> None:
    columns = "memo_hash, address, hd_index, amount, credits, challenge, created_at, expires_at"
    try:
        db.execute(f"INSERT INTO purchase({columns}, state) VALUES(?,?,?,?,?,?,?,?,'quoted')", draft)
    except ConstraintViolated as error:
        raise AddressInUse(f"index {draft.hd_index}") from error


def find_purchase(memo_hash: bytes, db: SqlConnection) -> Purchase | None:
    columns = "id, address, hd_index, amount, challenge, state, created_at, expires_at"
    row = db.execute(f"SELECT {columns} FROM purchase WHERE memo_hash=?", (memo_hash,)).fetchone()
    return Purchase(*row) if row else None


def find_credit(purchase: int, db: SqlConnection) -> StoredCredit | None:
    row = db.execute(_CREDIT + "c.purchase=?", (purchase,)).fetchone()
    return _credit_of(row) if row else None


def credit_transfer(credit: TransferCredit, db: SqlConnection) -> int:
    decision = decide_credit(credit, _load_facts(db, credit))
    apply_operation(db, decision.mint, credit.credited_at)
    db.execute("UPDATE purchase SET state='credited' WHERE id=?", (credit.purchase,))
    _insert_credit(db, credit, decision.credits)
    for payment in decision.unapplied:
        record_unapplied(payment, db)
    return decision.credits


def _load_facts(db: SqlConnection, credit: TransferCredit) -> CreditFacts:
    state, address = db.execute("SELECT state, address FROM purchase WHERE id=?", (credit.purchase,)).fetchone()
    used = db.execute("SELECT 1 FROM tx_credit WHERE chain_id=? AND tx_hash=?", (CHAIN_ID, credit.tx_hash)).fetchone()
    reversals, lost = db.execute(
        "SELECT count(*), coalesce(sum(lost), 0) FROM tx_reversal WHERE purchase=?", (credit.purchase,)
    ).fetchone()
    owners: dict[bytes, int] = {}
    for payee in {transfer.payee for transfer in other_transfers(credit)}:
        sql = "SELECT address, id FROM purchase WHERE address=? AND hd_index IS NOT NULL"
        owners.update(db.execute(sql, (payee,)).fetchall())
    return CreditFacts(state, address, used is not None, reversals, lost, owners)


def _insert_credit(db: SqlConnection, credit: TransferCredit, credits: int) -> None:
    receipt, paid = credit.seen.receipt, credit.paid
    row = {
        "chain_id": CHAIN_ID,
        "tx_hash": credit.tx_hash,
        "purchase": credit.purchase,
        "token": credit.token,
        "block_number": receipt.block_number,
        "block_hash": receipt.block_hash,
        "block_time": credit.seen.block_time * 1000,
        "amount": paid.amount,
        "credits": credits,
        "logs": json.dumps(paid.indexes),
        "finality": credit.finality,
        "late": int(credit.late),
        "memo_public": int(credit.memo_public),
        "credited_at": credit.credited_at,
        "sealed": credit.sealed,
        "sealed_until": credit.sealed_until,
    }
    marks = ", ".join(f":{name}" for name in row)
    db.execute(f"INSERT INTO tx_credit({', '.join(row)}) VALUES({marks})", row)


def record_unapplied(payment: UnappliedPayment, db: SqlConnection) -> None:
    db.execute("INSERT INTO unapplied_payment VALUES(?,?,?,?,?,?) ON CONFLICT DO NOTHING", (CHAIN_ID, *payment))


def is_token_waiting(token: str, db: SqlConnection) -> bool:
    return db.execute("SELECT 1 FROM tx_credit WHERE token=? AND sealed IS NOT NULL", (token,)).fetchone() is not None


def forget_token(token: str, db: SqlConnection) -> None:
    db.execute("UPDATE tx_credit SET sealed=NULL, sealed_until=NULL WHERE token=? AND sealed IS NOT NULL", (token,))


def forget_old_tokens(now: int, db: SqlConnection) -> None:
    used = "SELECT 1 FROM token t JOIN account a ON a.id = t.account WHERE t.hash = token AND a.debits + a.pending > 0"
    db.execute(
        f"""UPDATE tx_credit SET sealed=NULL, sealed_until=NULL
        WHERE sealed IS NOT NULL AND (sealed_until < ? OR EXISTS ({used}))""",
        (now,),
    )


def list_watched(db: SqlConnection) -> list[StoredCredit]:
    return [_credit_of(row) for row in db.execute(_CREDIT + "c.final_at IS NULL ORDER BY c.credited_at")]


def record_block(update: BlockUpdate, db: SqlConnection) -> None:
    tx_hash, *block = update
    db.execute(
        """UPDATE tx_credit SET block_number=?, block_hash=?, block_time=?, final_at=?, missing_since=NULL
        WHERE chain_id=? AND tx_hash=?""",
        (*block, CHAIN_ID, tx_hash),
    )


def record_missing(tx_hash: bytes, now: int, db: SqlConnection) -> None:
    db.execute(
        "UPDATE tx_credit SET missing_since=coalesce(missing_since, ?) WHERE chain_id=? AND tx_hash=?",
        (now, CHAIN_ID, tx_hash),
    )


def reverse_credit(tx_hash: bytes, now: int, db: SqlConnection) -> CreditReversal:
    row = db.execute(_CREDIT + "c.chain_id=? AND c.tx_hash=?", (CHAIN_ID, tx_hash)).fetchone()
    if row is None:
        return CreditReversal(0, 0)
    credit = _credit_of(row)
    taken = int(apply_operation(db, TakeBack(credit.token, credit.credits, PAYMENT_UNDONE), now))
    db.execute(
        """INSERT INTO tx_reversal(chain_id, tx_hash, purchase, token, block_number, block_hash, amount, credits,
        taken_back, lost, at) VALUES(?,?,?,?,?,?,?,?,?,?,?)""",
        (
            *(CHAIN_ID, tx_hash, credit.purchase, credit.token, credit.block_number, credit.block_hash),
            *(credit.amount, credit.credits, taken, credit.credits - taken, now),
        ),
    )
    db.execute("DELETE FROM tx_credit WHERE chain_id=? AND tx_hash=?", (CHAIN_ID, tx_hash))
    db.execute("UPDATE purchase SET state='reorged' WHERE id=?", (credit.purchase,))
    return CreditReversal(taken, credit.credits - taken)


def list_deposit_states(db: SqlConnection) -> list[tuple[int, str]]:
    """Return the number of every deposit address and the state of its purchase."""
    old = "SELECT hd_index, 'quoted' FROM old_quote WHERE hd_index IS NOT NULL"
    return db.execute(f"SELECT hd_index, state FROM purchase WHERE hd_index IS NOT NULL UNION ALL {old}").fetchall()


def list_deposits(db: SqlConnection) -> list[tuple[int, bytes]]:
    one, other = (f"SELECT hd_index, address FROM {t} WHERE hd_index IS NOT NULL" for t in ("purchase", "old_quote"))
    return db.execute(f"{one} UNION ALL {other} ORDER BY hd_index").fetchall()


def list_purchases(state: str | None, limit: int, db: SqlConnection) -> list[ListedPurchase]:
    return [ListedPurchase(*row) for row in db.execute(_PURCHASES, {"state": state, "limit": limit})]


def list_cases(db: SqlConnection) -> list[ReviewCase]:
    return [ReviewCase(*row) for row in db.execute(_CASES)]


def _credit_of(row: Any) -> StoredCredit:
    credit = StoredCredit(*row)
    return credit._replace(late=bool(credit.late), used=bool(credit.used))
