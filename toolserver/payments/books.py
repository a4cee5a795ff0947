"""Purchases in the ledger's database: what is done at once is done in one of its transactions.

Every function here is a job for `Durable.alone` or `Durable.read`: it is given the connection, and if it raises,
nothing of what it wrote remains.
"""

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from toolserver.billing.ledger import new_ref
from toolserver.billing.rules import ISSUED, Books, Mint, Needs, Operation, Revoke
from toolserver.billing.tables import decided
from toolserver.errors import ToolserverError
from toolserver.payments.matching import Paid, transfers
from toolserver.payments.policy import Finality, Sighting
from toolserver.payments.units import CHAIN_ID

State = Literal["quoted", "credited", "reorged"]
Reason = Literal["second_transfer", "transaction_used", "below_minimum", "late"]
REVOKED = "payment undone on the chain"


class Taken(ToolserverError):
    """The purchase was credited before, or the transaction was used for another one, or nothing is left to credit."""


class IndexTaken(ToolserverError):
    """Somebody else has given this address out."""


class Draft(NamedTuple):
    """A purchase about to be offered. `hd_index` None: the address is shared."""

    memo_hash: bytes
    address: bytes
    hd_index: int | None
    amount: int
    credits: int
    challenge: str | None
    created_at: int
    expires_at: int


class Purchase(NamedTuple):
    """A purchase as it is stored."""

    id: int
    address: bytes
    hd_index: int | None
    amount: int
    challenge: str | None
    state: State
    created_at: int
    expires_at: int


class Credit(NamedTuple):
    """A payment to be credited. `token` is a hash; `sealed` is the token itself, if its buyer may ask for it again."""

    purchase: int
    tx_hash: bytes
    token: str
    seen: Sighting
    paid: Paid
    credits: int
    finality: Finality
    late: bool
    memo_public: bool
    sealed: bytes | None
    sealed_until: int | None


class Credited(NamedTuple):
    """A payment that was credited, as it is stored. `used`: the token has been spent from."""

    tx_hash: bytes
    purchase: int
    address: bytes
    token: str
    block_number: int
    block_hash: bytes
    amount: int
    credits: int
    late: int
    sealed: bytes | None
    sealed_until: int | None
    missing_since: int | None
    used: int


_CREDITED = """SELECT c.tx_hash, c.purchase, p.address, c.token, c.block_number, c.block_hash, c.amount, c.credits,
  c.late, c.sealed, c.sealed_until, c.missing_since, a.debits + a.pending > 0
  FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  JOIN token t ON t.hash = c.token JOIN account a ON a.id = t.account WHERE """


def next_index(db: sqlite3.Connection) -> int:
    """The first index whose address nobody was ever given."""
    return int(db.execute("SELECT coalesce(max(hd_index) + 1, 0) FROM purchase").fetchone()[0])


def offer(db: sqlite3.Connection, draft: Draft) -> None:
    """Keep a new purchase. Raises IndexTaken."""
    columns = "memo_hash, address, hd_index, amount, credits, challenge, created_at, expires_at"
    try:
        db.execute(f"INSERT INTO purchase({columns}, state) VALUES(?,?,?,?,?,?,?,?,'quoted')", draft)
    except sqlite3.IntegrityError as error:
        raise IndexTaken(f"index {draft.hd_index}") from error


def find(db: sqlite3.Connection, memo_hash: bytes) -> Purchase | None:
    """The purchase of a memo."""
    columns = "id, address, hd_index, amount, challenge, state, created_at, expires_at"
    row = db.execute(f"SELECT {columns} FROM purchase WHERE memo_hash=?", (memo_hash,)).fetchone()
    return Purchase(*row) if row else None


def credited(db: sqlite3.Connection, purchase: int) -> Credited | None:
    """How a purchase was credited."""
    return _one(db.execute(_CREDITED + "c.purchase=?", (purchase,)).fetchone())


def _one(row: Any) -> Credited | None:
    return Credited(*row) if row else None


def credit(db: sqlite3.Connection, given: Credit, now: int) -> int:
    """Turn a payment into credits on a new token; how many. All of it, or nothing.

    Raises:
        Taken: it was done before.
    """
    lost, before = db.execute(
        "SELECT coalesce(sum(lost), 0), count(*) FROM tx_reversal WHERE purchase=?", (given.purchase,)
    ).fetchone()
    credits = given.credits - lost  # what was spent of an earlier credit of the same money
    changed = db.execute(
        "UPDATE purchase SET state='credited' WHERE id=? AND state<>'credited'", (given.purchase,)
    ).rowcount
    used = db.execute("SELECT 1 FROM tx_credit WHERE chain_id=? AND tx_hash=?", (CHAIN_ID, given.tx_hash)).fetchone()
    if not changed or used or credits < 1:
        raise Taken("credited before")
    cause = f"eip155:{CHAIN_ID}:0x{given.tx_hash.hex()}:{before}"
    _do(db, Mint(given.token, credits, cause, new_ref()), now)
    _insert(db, given, credits, now)
    for purchase, amount in _beside(db, given).items():
        unapplied(db, given.tx_hash, purchase, amount, "transaction_used", now)
    return int(credits)


def _insert(db: sqlite3.Connection, given: Credit, credits: int, now: int) -> None:
    receipt, paid = given.seen.receipt, given.paid
    row = {
        "chain_id": CHAIN_ID,
        "tx_hash": given.tx_hash,
        "purchase": given.purchase,
        "token": given.token,
        "block_number": receipt.block_number,
        "block_hash": receipt.block_hash,
        "block_time": given.seen.block_time * 1000,
        "amount": paid.amount,
        "credits": credits,
        "logs": json.dumps(paid.indexes),
        "finality": given.finality,
        "late": int(given.late),
        "memo_public": int(given.memo_public),
        "credited_at": now,
        "sealed": given.sealed,
        "sealed_until": given.sealed_until,
    }
    marks = ", ".join(f":{name}" for name in row)
    db.execute(f"INSERT INTO tx_credit({', '.join(row)}) VALUES({marks})", row)


def _beside(db: sqlite3.Connection, given: Credit) -> Counter[int]:
    """What the same transaction brought us beside what was counted, by purchase: it can buy nothing any more."""
    (own,) = db.execute("SELECT address FROM purchase WHERE id=?", (given.purchase,)).fetchone()
    found: Counter[int] = Counter()
    for transfer in transfers(given.seen.receipt):
        if transfer.amount and transfer.log_index not in given.paid.indexes:
            sql = "SELECT id FROM purchase WHERE address=? AND hd_index IS NOT NULL"
            row = (given.purchase,) if transfer.payee == own else db.execute(sql, (transfer.payee,)).fetchone()
            if row is not None:
                found[row[0]] += transfer.amount
    return found


def _do(db: sqlite3.Connection, operation: Operation[Any], now: int) -> Any:
    """An operation of the ledger, within this transaction."""
    outcome = decided(lambda: now, db, [operation])[0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def unapplied(db: sqlite3.Connection, tx_hash: bytes, purchase: int, amount: int, reason: Reason, now: int) -> None:
    """Remember money that bought nothing."""
    row = (CHAIN_ID, tx_hash, purchase, amount, reason, now)
    db.execute("INSERT OR IGNORE INTO unapplied_payment VALUES(?,?,?,?,?,?)", row)


def is_waiting(db: sqlite3.Connection, token: str) -> bool:
    """Whether a token is still kept for its buyer."""
    return db.execute("SELECT 1 FROM tx_credit WHERE token=? AND sealed IS NOT NULL", (token,)).fetchone() is not None


def forget_token(db: sqlite3.Connection, token: str) -> None:
    """The buyer has the token, so nothing waits any more."""
    db.execute("UPDATE tx_credit SET sealed=NULL, sealed_until=NULL WHERE token=? AND sealed IS NOT NULL", (token,))


def forget_old_tokens(db: sqlite3.Connection, now: int) -> None:
    """Forget every token that was used, or waited for long enough."""
    used = "SELECT 1 FROM token t JOIN account a ON a.id = t.account WHERE t.hash = token AND a.debits + a.pending > 0"
    db.execute(
        f"""UPDATE tx_credit SET sealed=NULL, sealed_until=NULL
        WHERE sealed IS NOT NULL AND (sealed_until < ? OR EXISTS ({used}))""",
        (now,),
    )


def watched(db: sqlite3.Connection) -> list[Credited]:
    """Credits that the chain could still undo, oldest first."""
    rows = db.execute(_CREDITED + "c.final_at IS NULL ORDER BY c.credited_at").fetchall()
    return [found for row in rows if (found := _one(row)) is not None]


def moved(db: sqlite3.Connection, tx_hash: bytes, seen: Sighting, now: int, *, final: bool) -> None:
    """The payment is on the chain, perhaps in another block, perhaps for good."""
    receipt = seen.receipt
    db.execute(
        """UPDATE tx_credit SET block_number=?, block_hash=?, block_time=?, missing_since=NULL, final_at=?
        WHERE chain_id=? AND tx_hash=?""",
        (
            *(receipt.block_number, receipt.block_hash, seen.block_time * 1000, now if final else None),
            *(CHAIN_ID, tx_hash),
        ),
    )


def missing(db: sqlite3.Connection, tx_hash: bytes, now: int) -> None:
    """The payment was not found where it was; the first time counts."""
    db.execute(
        "UPDATE tx_credit SET missing_since=coalesce(missing_since, ?) WHERE chain_id=? AND tx_hash=?",
        (now, CHAIN_ID, tx_hash),
    )


def reverse(db: sqlite3.Connection, tx_hash: bytes, now: int) -> tuple[int, int]:
    """Take back a credit whose payment is gone, as far as it is unspent: `(taken back, lost)`. The token ends.

    The purchase can be credited anew, should the transaction come back.
    """
    row = db.execute(_CREDITED + "c.chain_id=? AND c.tx_hash=?", (CHAIN_ID, tx_hash)).fetchone()
    found = _one(row)
    if found is None:
        return 0, 0
    taken = int(_do(db, TakeBack(found.token, found.credits), now))
    db.execute(
        """INSERT INTO tx_reversal(chain_id, tx_hash, purchase, token, block_number, block_hash, amount, credits,
        taken_back, lost, at) VALUES(?,?,?,?,?,?,?,?,?,?,?)""",
        (
            *(CHAIN_ID, tx_hash, found.purchase, found.token, found.block_number, found.block_hash),
            *(found.amount, found.credits, taken, found.credits - taken, now),
        ),
    )
    db.execute("DELETE FROM tx_credit WHERE chain_id=? AND tx_hash=?", (CHAIN_ID, tx_hash))
    db.execute("UPDATE purchase SET state='reorged' WHERE id=?", (found.purchase,))
    return taken, found.credits - taken


@dataclass(slots=True)
class TakeBack(Operation[int]):
    """Make a token invalid and take back what is unspent of some credits; how many. Never below zero."""

    key: str
    credits: int

    def needs(self) -> Needs:
        return Needs(self.key)

    def on(self, books: Books) -> int:
        Revoke(self.key, REVOKED).on(books)
        account = books.accounts[books.tokens[self.key].account]
        taken = min(self.credits, account.spendable)
        if taken > 0:
            books.write("posted", account.id, ISSUED, taken)
        return taken


def deposits(db: sqlite3.Connection) -> list[tuple[int, bytes]]:
    """Every deposit address ever given out, by index."""
    return db.execute("SELECT hd_index, address FROM purchase WHERE hd_index IS NOT NULL ORDER BY hd_index").fetchall()
