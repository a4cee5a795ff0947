"""Stores purchases in the ledger's database, so that credits, token and purchase change in one transaction.

The functions below the store run inside a transaction that their caller opened. Unpaid quotes
are archived long after they expired: an archived quote takes half the space and can still be
claimed. If a transaction on the chain pays one purchase and also sends money to the address
of an archived quote, that money is not listed as a case; the operator's search of all deposit
addresses finds it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from toolserver.money.ledger.operations import ChangeLimits, Mint
from toolserver.money.ledger.owner_limits import LimitChange
from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.ledger.sql_withholding import give_back_credits
from toolserver.money.ledger.state import new_ref
from toolserver.money.purchases.listing import ListedPurchase, ReviewCase
from toolserver.money.purchases.matching import UsdcTransfer, transfers
from toolserver.money.purchases.records import (
    PAYMENT_UNDONE,
    AddressInUse,
    BlockUpdate,
    CreditReversal,
    NotCreditable,
    Purchase,
    PurchaseDraft,
    SecondPayment,
    State,
    StoredCredit,
    TakeBack,
    TransferCredit,
    UnagreedTransfer,
    UnappliedPayment,
    draft_second,
    second_memo,
)
from toolserver.money.purchases.sql_doubts import name_deposit, weigh_credit
from toolserver.money.purchases.units import CHAIN_ID
from toolserver.sql.connection import SqlConnection, insert, is_shared
from toolserver.sql.errors import ConstraintViolated
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask
from toolserver.sql.ledger_place import LedgerPlace, read_place

R = TypeVar("R")

ROOM = "purchases"  # writes about purchases: by one instance at a time


def memo_hash(memo: str) -> bytes:
    """Return the SHA-256 that is stored instead of a memo: 128 random bits need no slow hash."""
    return hashlib.sha256(memo.encode()).digest()


class CreditFacts(NamedTuple):
    """The facts, read within the store's transaction, about a purchase that is to be credited.

    `reversals` counts earlier payments of this purchase that were undone, and `lost` their
    credits that had been spent. `owners` maps deposit addresses to their purchases: at least
    the addresses that the transaction paid.
    """

    state: State
    address: bytes
    transaction_used: bool
    reversals: int
    lost: int
    owners: Mapping[bytes, int]


class CreditDecision(NamedTuple):
    """The rows to write: the credits of the purchase, the ledger's operation, and money that bought nothing."""

    credits: int
    mint: Mint
    unapplied: list[UnappliedPayment]


def decide_credit(credit: TransferCredit, facts: CreditFacts) -> CreditDecision:
    """Decide how many credits a payment buys, less those that were spent before an earlier payment was undone.

    Raises:
        NotCreditable: the purchase or the transaction was credited before, or nothing is left to credit.
    """
    credits = credit.credits - facts.lost
    if facts.state == "credited" or facts.transaction_used or credits < 1:
        raise NotCreditable("credited before")
    cause = f"{name_deposit(credit.tx_hash)}:{facts.reversals}"
    return CreditDecision(credits, Mint(credit.token, credits, cause, new_ref()), _find_unapplied(credit, facts))


def other_transfers(credit: TransferCredit) -> Iterable[UsdcTransfer]:
    """Return the USDC transfers of the same transaction that were not counted for this purchase."""
    transferred = transfers(credit.seen.receipt)
    return [t for t in transferred if t.amount and t.log_index not in credit.paid.indexes]


def _find_unapplied(credit: TransferCredit, facts: CreditFacts) -> list[UnappliedPayment]:
    """Return what else the same transaction paid to us. A transaction buys once, so this money buys nothing."""
    sums: Counter[int] = Counter()
    for transfer in other_transfers(credit):
        owner = credit.purchase if transfer.payee == facts.address else facts.owners.get(transfer.payee)
        if owner is not None:
            sums[owner] += transfer.amount
    return [
        UnappliedPayment(credit.tx_hash, purchase, amount, "transaction_used", credit.credited_at)
        for purchase, amount in sums.items()
    ]


class SqlPurchaseStore:
    """The purchases of one database, beside the ledger whose tokens they fund. Each call is one transaction, durable on
    return. Every method raises StorageFailed when the database cannot be used.

    With a `task`, a write raises LeaseLost if another instance has taken over that task.
    """

    def __init__(self, file: GroupCommit, task: LeasedTask | None = None) -> None:
        self._file, self._task = file, task

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job if self._task is None else self._task.guard(job), room=ROOM)

    async def find_next_index(self) -> int:
        """Return the first index above those of all stored deposit addresses."""
        return await self._file.read(find_next_index)

    async def set_aside(self, start: int, count: int) -> int:
        """Reserve `count` indexes that no other instance gets, from `start` on, and return the first of them."""
        return await self._write(partial(set_aside, start, count))

    async def add_quote(self, draft: PurchaseDraft) -> None:
        """Store a new purchase. Raises AddressInUse."""
        await self._write(partial(add_quote, draft))

    async def find_purchase(self, memo_hash: bytes) -> Purchase | None:
        """Return the purchase of a memo, given the memo's SHA-256, or None if there is none."""
        purchase = await self._file.read(partial(find_purchase, memo_hash))
        if purchase is None and await self._file.read(partial(is_aside, memo_hash)):
            await self._write(partial(bring_back, memo_hash))
            purchase = await self._file.read(partial(find_purchase, memo_hash))
        return purchase

    async def put_quotes_aside(self, before: int, most: int) -> int:
        """Archive at most `most` quotes that expired before a time and for which no payment came, and return how many.

        Archived quotes are no longer listed. Their addresses stay taken, and a memo still finds its purchase.
        """
        return await self._write(partial(put_aside, before, most))

    async def find_credit(self, purchase: int) -> StoredCredit | None:
        """Return the credit of a purchase, or None if it was not credited."""
        return await self._file.read(partial(find_credit, purchase))

    async def credit_transfer(self, credit: TransferCredit) -> int:
        """Turn a payment into credits, on a new token or on the one that the quote named, and return their number.

        Raises:
            PaymentRequired: the named token was revoked since, and nothing was written.
            NotCreditable, CauseReused: nothing was written.
        """
        return await self._write(partial(credit_transfer, credit))

    async def credit_second(self, second: SecondPayment, credit: TransferCredit) -> int:
        """Credit a second payment to the token of the first one, as a purchase of its own, and return the credits.

        Raises as `credit_transfer`.
        """
        return await self._write(partial(credit_second, second, credit))

    async def find_second_credit(self, second: SecondPayment) -> int | None:
        """Return the credits that a second payment bought, or None if it bought nothing yet."""
        return await self._file.read(partial(find_second_credit, second))

    async def list_seconds(self) -> list[SecondPayment]:
        """Return the second payments on the chain that are neither credited nor a case, oldest first."""
        return await self._file.read(list_seconds)

    async def record_unapplied(self, payment: UnappliedPayment) -> None:
        """Record money that bought nothing. The first record for a transaction and a purchase stays."""
        await self._write(partial(record_unapplied, payment))

    async def is_token_waiting(self, token: str) -> bool:
        """Return True if the encrypted token is still stored for its buyer."""
        return await self._file.read(partial(is_token_waiting, token))

    async def forget_token(self, token: str) -> None:
        """Delete the encrypted token: its buyer has shown that it arrived."""
        await self._write(partial(forget_token, token))

    async def forget_old_tokens(self, now: int) -> None:
        """Delete every encrypted token that was spent from or whose `sealed_until` has passed."""
        await self._write(partial(forget_old_tokens, now))

    async def list_watched(self) -> list[StoredCredit]:
        """Return the credits that the chain could still undo, oldest first."""
        return await self._file.read(list_watched)

    async def record_block(self, update: BlockUpdate, now: int) -> None:
        """Record where a credited payment is on the chain: it no longer counts as missing, nor is withheld for that."""
        await self._write(partial(record_block, update, now))

    async def record_missing(self, tx_hash: bytes, now: int) -> None:
        """Record that a credited payment was not found on the chain, and withhold what it bought. The first such record
        stays.
        """
        await self._write(partial(record_missing, tx_hash, now))

    async def reverse_credit(self, tx_hash: bytes, now: int) -> CreditReversal:
        """Revoke the token of a payment that is gone, and take back its unspent credits.

        A token that was topped up stays valid if all of them could be taken back. Return (0, 0) if none is credited.
        The purchase can be credited again if the transaction comes back.
        """
        return await self._write(partial(reverse_credit, tx_hash, now))

    async def list_deposits(self) -> list[tuple[int, bytes]]:
        """Return every deposit address that was ever given out, with its index, in the order of the indexes."""
        return await self._file.read(list_deposits)

    async def list_purchases(self, state: str | None, limit: int) -> list[ListedPurchase]:
        """Return the newest purchases of one state (None: of any), newest first."""
        return await self._file.read(partial(list_purchases, state, limit))

    async def list_cases(self) -> list[ReviewCase]:
        """Return the cases for a person, oldest first."""
        return await self._file.read(list_cases)

    async def list_unagreed(self) -> list[UnagreedTransfer]:
        """Return the credited transfers that no second server has confirmed."""
        return await self._file.read(list_unagreed)

    async def record_agreed(self, tx_hash: bytes, now: int) -> None:
        """Record that a second server reports the same, so that the transfer is no longer a case."""
        await self._write(partial(record_opinion, "agreed_at", tx_hash, now))

    async def record_disputed(self, tx_hash: bytes, now: int) -> None:
        """Record that servers disagree, and withhold what the transfer bought. The first such record stays."""
        await self._write(partial(record_opinion, "disputed_since", tx_hash, now))

    async def sum_sold(self, since: int) -> int:
        """Return what was credited or handed to the facilitator since a time (epoch ms), in 0.000001 USDC."""
        return await self._file.read(partial(sum_sold, since))

    async def hold_transfer(self, tx_hash: bytes, purchase: int, amount: int, reason: str, now: int) -> bool:
        """Hold a transfer back until a person approves it. Return True while it waits, False once it is approved."""
        return await self._write(partial(hold_transfer, (tx_hash, purchase, amount, reason, now)))


def read_purchases(place: LedgerPlace, state: str | None, limit: int) -> list[ListedPurchase]:
    """Return the newest stored purchases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, partial(list_purchases, state, limit))


def read_cases(place: LedgerPlace) -> list[ReviewCase]:
    """Return the stored cases for a person, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, list_cases)


def read_deposits(place: LedgerPlace) -> list[tuple[int, bytes]]:
    """Return every stored deposit address with its number, even while a service has the database open.

    Raises StorageFailed.
    """
    return read_place(place, list_deposits)


def read_deposit_states(place: LedgerPlace) -> list[tuple[int, str]]:
    """Return the number of every stored deposit address and the state of its purchase. Raises StorageFailed."""
    return read_place(place, list_deposit_states)


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
    WHERE NOT EXISTS (SELECT 1 FROM tx_credit c JOIN purchase b ON b.id = c.purchase
      WHERE c.tx_hash = u.tx_hash AND b.address = p.address AND (c.purchase = u.purchase OR p.hd_index IS NOT NULL))
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
        db.execute(f"INSERT INTO purchase({columns}, state) VALUES(?,?,?,?,?,?,?,?,'quoted')", draft[:-2])
    except ConstraintViolated as error:
        raise AddressInUse(f"index {draft.hd_index}") from error
    if draft.credits_per_day is not None:
        db.execute("INSERT INTO quote_limit VALUES(?,?)", (draft.memo_hash, draft.credits_per_day))
    if draft.tops_up is not None:  # by the first token of the account, which stays if the token is replaced
        db.execute("INSERT INTO quote_topup VALUES(?,?)", (draft.memo_hash, _find_first_token(db, draft.tops_up)))


def find_purchase(memo_hash: bytes, db: SqlConnection) -> Purchase | None:
    columns = "p.id, p.address, p.hd_index, p.amount, p.challenge, p.state, p.created_at, p.expires_at"
    topped_up = "LEFT JOIN quote_topup q ON q.memo_hash = p.memo_hash LEFT JOIN token t ON t.hash = q.token"
    live = "CASE WHEN t.revoked_at IS NULL THEN coalesce(t.successor, t.hash) END"
    sql = f"SELECT {columns}, {live} FROM purchase p {topped_up} WHERE p.memo_hash=?"
    row = db.execute(sql, (memo_hash,)).fetchone()
    return Purchase(*row) if row else None


def find_credit(purchase: int, db: SqlConnection) -> StoredCredit | None:
    row = db.execute(_CREDIT + "c.purchase=?", (purchase,)).fetchone()
    return _credit_of(row) if row else None


def credit_transfer(credit: TransferCredit, db: SqlConnection) -> int:
    decision = decide_credit(credit, _load_facts(db, credit))
    if apply_operation(db, decision.mint, credit.credited_at).replayed:  # for another purchase that it paid as well
        raise NotCreditable("credited before")
    if credit.tops_up:
        credit = credit._replace(token=_find_first_token(db, credit.token))
    else:
        _set_quoted_limit(db, credit)
    db.execute("UPDATE purchase SET state='credited' WHERE id=?", (credit.purchase,))
    waiting = "UPDATE payment_review SET approved_at=? WHERE tx_hash=? AND purchase=? AND approved_at IS NULL"
    db.execute(waiting, (credit.credited_at, credit.tx_hash, credit.purchase))  # it waited for a second server only
    _insert_credit(db, credit, decision.credits)
    weigh_credit(credit.tx_hash, credit.credited_at, db)
    for payment in decision.unapplied:
        record_unapplied(payment, db)
    return decision.credits


def credit_second(second: SecondPayment, credit: TransferCredit, db: SqlConnection) -> int:
    hashed = memo_hash(second_memo(second.memo_hash, second.tx_hash))
    purchase = find_purchase(hashed, db)
    if purchase is None:
        add_quote(draft_second(hashed, second, credit), db)
        purchase = find_purchase(hashed, db)
    assert purchase is not None
    live = "SELECT coalesce(successor, hash) FROM token WHERE hash=?"
    token = db.execute(live, (credit.token,)).fetchone()[0]
    return credit_transfer(credit._replace(purchase=purchase.id, token=token, tops_up=True), db)


def find_second_credit(second: SecondPayment, db: SqlConnection) -> int | None:
    sql = "SELECT c.credits FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE c.tx_hash=? AND p.memo_hash=?"
    row = db.execute(sql, (second.tx_hash, memo_hash(second_memo(second.memo_hash, second.tx_hash)))).fetchone()
    return None if row is None else int(row[0])


_SECONDS = """SELECT DISTINCT m.tx_hash, p.memo_hash, m.block_number FROM chain_transfer m
  JOIN purchase p ON p.address = m.payee AND p.hd_index IS NOT NULL AND p.state = 'credited'
  WHERE m.state = 'second' AND NOT EXISTS (SELECT 1 FROM tx_credit c WHERE c.tx_hash = m.tx_hash)
    AND NOT EXISTS (SELECT 1 FROM unapplied_payment u WHERE u.tx_hash = m.tx_hash)
  ORDER BY m.block_number LIMIT 100"""


def list_seconds(db: SqlConnection) -> list[SecondPayment]:
    found = [(bytes(tx), bytes(memo)) for tx, memo, _ in db.execute(_SECONDS).fetchall()]
    pairs = [(tx, memo, find_purchase(memo, db)) for tx, memo in found]
    return [SecondPayment(purchase, memo, tx) for tx, memo, purchase in pairs if purchase is not None]


def _find_first_token(db: SqlConnection, token: str) -> str:
    """Return the SHA-256 of the first token of a token's account: rows refer to it, whichever token replaced it."""
    first: str = db.execute("SELECT hash FROM token WHERE hash=? OR successor=?", (token, token)).fetchone()[0]
    return first


def _set_quoted_limit(db: SqlConnection, credit: TransferCredit) -> None:
    """Set the cap per day on the new token that its buyer asked for with the quote, if any."""
    quoted = "SELECT q.credits_per_day FROM purchase p JOIN quote_limit q ON q.memo_hash = p.memo_hash WHERE p.id=?"
    row = db.execute(quoted, (credit.purchase,)).fetchone()
    if row is not None:
        change = LimitChange(frozenset({"credits_per_day"}), int(row[0]))
        apply_operation(db, ChangeLimits(credit.token, change), credit.credited_at)


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
        "agreed_at": credit.credited_at if credit.opinion == "agreed" else None,
        "disputed_since": credit.credited_at if credit.opinion == "disputed" else None,
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


def record_block(update: BlockUpdate, now: int, db: SqlConnection) -> None:
    tx_hash, *block = update
    db.execute(
        """UPDATE tx_credit SET block_number=?, block_hash=?, block_time=?, final_at=?, missing_since=NULL
        WHERE chain_id=? AND tx_hash=?""",
        (*block, CHAIN_ID, tx_hash),
    )
    weigh_credit(tx_hash, now, db)


def record_missing(tx_hash: bytes, now: int, db: SqlConnection) -> None:
    db.execute(
        "UPDATE tx_credit SET missing_since=coalesce(missing_since, ?) WHERE chain_id=? AND tx_hash=?",
        (now, CHAIN_ID, tx_hash),
    )
    weigh_credit(tx_hash, now, db)


def reverse_credit(tx_hash: bytes, now: int, db: SqlConnection) -> CreditReversal:
    row = db.execute(_CREDIT + "c.chain_id=? AND c.tx_hash=?", (CHAIN_ID, tx_hash)).fetchone()
    if row is None:
        return CreditReversal(0, 0)
    credit = _credit_of(row)
    give_back_credits(name_deposit(tx_hash), credit.token, now, db)
    topup = """SELECT 1 FROM purchase p JOIN quote_topup q ON q.memo_hash = p.memo_hash
      WHERE p.id=? AND q.token=?"""
    spares = db.execute(topup, (credit.purchase, credit.token)).fetchone() is not None
    taken = int(apply_operation(db, TakeBack(credit.token, credit.credits, PAYMENT_UNDONE, spares), now))
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
    """Return the number of every deposit address and the state of its purchase: `second` if it was credited, and the
    book of the chain has more money there that has bought nothing or is not settled yet.
    """
    old = "SELECT hd_index, 'quoted' FROM old_quote WHERE hd_index IS NOT NULL"
    open_ = """SELECT 1 FROM chain_transfer m
      WHERE m.payee = p.address AND m.inward = 1 AND m.state IN ('second', 'pending', 'held')"""
    state = f"CASE WHEN p.state = 'credited' AND EXISTS ({open_}) THEN 'second' ELSE p.state END"
    sql = f"SELECT p.hd_index, {state} FROM purchase p WHERE p.hd_index IS NOT NULL UNION ALL {old}"
    return db.execute(sql).fetchall()


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


def list_unagreed(db: SqlConnection) -> list[UnagreedTransfer]:
    sql = """SELECT c.tx_hash, p.address, c.amount, c.credited_at, c.disputed_since
      FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE c.agreed_at IS NULL ORDER BY c.credited_at"""
    return [UnagreedTransfer(*row) for row in db.execute(sql)]


def record_opinion(column: str, tx_hash: bytes, now: int, db: SqlConnection) -> None:
    db.execute(f"UPDATE tx_credit SET {column}=coalesce({column}, ?) WHERE tx_hash=?", (now, tx_hash))
    weigh_credit(tx_hash, now, db)


def sum_sold(since: int, db: SqlConnection) -> int:
    sql = """SELECT (SELECT coalesce(sum(amount), 0) FROM tx_credit WHERE credited_at>=?1)
      + (SELECT coalesce(sum(amount), 0) FROM x402_payment WHERE begun_at>=?1)"""
    return int(db.execute(sql, (since,)).fetchone()[0])


def hold_transfer(row: tuple[bytes, int, int, str, int], db: SqlConnection) -> bool:
    columns = "tx_hash, purchase, amount, reason, at"
    db.execute(f"INSERT INTO payment_review({columns}) VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING", row)
    approval = db.execute("SELECT approved_at FROM payment_review WHERE tx_hash=? AND purchase=?", row[:2]).fetchone()
    return approval is None or approval[0] is None


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


async def approve_transfer(file: GroupCommit, tx_hash: bytes, now: int) -> bool:
    """Approve a transfer that waits for a person, so that it can be credited. Return False if none waits."""
    return await file.alone(partial(_approve, tx_hash, now), room=ROOM)


def _approve(tx_hash: bytes, now: int, db: SqlConnection) -> bool:
    sql = "UPDATE payment_review SET approved_at=? WHERE tx_hash=? AND approved_at IS NULL"
    return db.execute(sql, (now, tx_hash)).rowcount > 0
