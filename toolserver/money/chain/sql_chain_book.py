"""Stores the book of the chain beside the purchases whose money it shows.

The functions below the store run inside a transaction that their caller opened. A row is
decided from what the chain says and from the tables of purchases, signed payments, sweeps and
refunds; nothing here changes those. What a transfer bought that is gone is withheld at once.
Times are epoch milliseconds, amounts 0.000001 USDC.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from toolserver.money.chain.transfer_states import (
    Dust,
    PlacedTransfer,
    QuotedAddress,
    SignedPayment,
    TransferFacts,
    TransferState,
    decide_state,
    is_final_enough,
)
from toolserver.money.purchases.matching import ChainHeads, Policy
from toolserver.money.purchases.sql_doubts import weigh_credit
from toolserver.sql.connection import SqlConnection, among_values, insert
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask

R = TypeVar("R")

ROOM = "chain"  # writes to the book: by one instance at a time
PAGE = 500  # rows in one transaction: few enough that a paid call does not wait long for it
DAY_MS = 86_400_000
DAY_BLOCKS = 43_200  # of Base, one every two seconds
RECENT_MS = 3_600_000  # how far back documents are looked at again, because they may follow their transfer


class Most(NamedTuple):
    """How many addresses with money and with an unpaid quote are read by logs. Of the others balances are compared."""

    paid: int
    quoted: int


WATCHED = Most(paid=1_000, quoted=1_000)  # addresses in a request or two, every 20 seconds
HOT = Most(paid=2**40, quoted=20_000)  # every ten minutes: all that have money, but not all that a stranger asked for
COMPARED_UNPAID = 20_000  # unpaid quotes whose balances are compared each day: the newest
ROUND_DAYS = 32  # within which the balance of each of the others is compared once


class BookRules(NamedTuple):
    """What decides states beside the facts: the policy of finality, the grace of quotes, and the wallets that are
    watched beside the addresses that were issued.
    """

    policy: Policy
    grace_ms: int
    wallets: frozenset[bytes]


class ChainTransfer(NamedTuple):
    """A transfer as it is stored. `changes` is the number of its changes so far, `state` the last one."""

    id: bytes
    tx_hash: bytes
    payer: bytes
    payee: bytes
    amount: int
    inward: int
    outward: int
    block_number: int
    block_hash: bytes
    block_time: int
    log_index: int
    state: TransferState
    changes: int


class HotAddresses(NamedTuple):
    """Addresses that are read by logs: those that may be paid, and those of them that may hold money."""

    receiving: list[bytes]
    sending: list[bytes]


class ScanMark(NamedTuple):
    """How far the chain was read, and when."""

    block: int
    at: int


class BalanceDifference(NamedTuple):
    """An address whose transfers do not add up to what it held after a block, in 0.000001 USDC."""

    address: bytes
    booked: int
    held: int


_COLUMNS = ", ".join(ChainTransfer._fields)
_ROWS = f"SELECT {_COLUMNS} FROM chain_transfer WHERE "


class SqlChainBook:
    """The book in one database. Each call is one transaction, durable on return. Every method raises StorageFailed when
    the database cannot be used, and a write LeaseLost if another instance has taken over the `task`.
    """

    def __init__(self, file: GroupCommit, rules: BookRules, task: LeasedTask | None = None) -> None:
        self._file, self._rules, self._task = file, rules, task

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job if self._task is None else self._task.guard(job), room=ROOM)

    async def find_mark(self, name: str) -> ScanMark | None:
        """Return how far the task of a name has read the chain, or None if it never has."""
        return await self._file.read(partial(find_mark, name))

    async def set_mark(self, name: str, mark: ScanMark) -> None:
        """Record how far the task of a name has read the chain."""
        await self._write(partial(set_mark, name, mark))

    async def find_start(self) -> int | None:
        """Return the time of the first quote or signed payment (epoch ms), or None if there was none."""
        return await self._file.read(find_start)

    async def list_watched(self, latest: int, now: int) -> HotAddresses:
        """Return the addresses with an open quote or with money that moved within a day, and the wallets; of very many
        the newest, because free quotes must cost little.
        """
        first, since = latest - DAY_BLOCKS, now - DAY_MS
        return await self._file.read(partial(list_hot, self._rules.wallets, first, since, now, WATCHED))

    async def list_hot(self, latest: int, now: int, days: int) -> HotAddresses:
        """Return the addresses with money within a number of days, and with an open quote; of very many the newest."""
        since, first = now - days * DAY_MS, latest - days * DAY_BLOCKS
        return await self._file.read(partial(list_hot, self._rules.wallets, first, since, now, HOT))

    async def list_compared(self, last: int, now: int) -> list[bytes]:
        """Return the addresses whose balances are compared on a day: the wallets, all that ever had money or differed,
        those of unpaid quotes that ended since the day before the `last` comparison, and the newest ones; of the other
        unpaid ones a part, another one each day. Times are epoch ms.
        """
        return await self._file.read(partial(list_compared, self._rules.wallets, last, now))

    async def list_issued(self, after: bytes = b"") -> list[bytes]:
        """Return a page of all addresses that were ever issued and of the wallets, in order, after one of them."""
        return await self._file.read(partial(list_issued, self._rules.wallets, after))

    async def list_in_blocks(self, first: int, last: int) -> list[ChainTransfer]:
        """Return the stored transfers that are on the chain in a range of blocks."""
        return await self._file.read(partial(list_in_blocks, first, last))

    async def record(self, placed: Sequence[PlacedTransfer], heads: ChainHeads, now: int) -> int:
        """Record transfers that the chain has now, and return how many rows changed. `block_time` has to be known."""
        changed = 0
        for at in range(0, len(placed), PAGE):
            changed += await self._write(partial(record, placed[at : at + PAGE], heads, self._rules, now))
        return changed

    async def record_gone(self, ids: Sequence[bytes], heads: ChainHeads, now: int) -> int:
        """Record that the chain no longer has these transfers."""
        return await self._write(partial(record_gone, ids, heads, self._rules, now))

    async def list_dust_counted(self) -> dict[bytes, int]:
        """Return for each address that has dust the last block whose dust is counted."""
        return await self._file.read(list_dust_counted)

    async def add_dust(self, dust: Mapping[bytes, Dust]) -> None:
        """Add the dust of a range of final blocks to that of each address. It must not have been counted before."""
        await self._write(partial(add_dust, dust))

    async def forget_dust(self, addresses: Sequence[bytes]) -> None:
        """Delete the sums of these addresses, whose blocks are read again from the first one on."""
        await self._write(partial(forget_dust, addresses))

    async def decide_recent(
        self, heads: ChainHeads, now: int, last: int | None = None, *, with_held: bool = False
    ) -> int:
        """Decide anew the pending transfers, and those whose documents changed in the hour before the `last` time that
        this was done (epoch ms), or since. Return the changes.

        `with_held`: the held ones too, which takes a look at every transfer. A dispute about a payment by x402 leaves
        no document when it ends.
        """
        since = (now if last is None else min(last, now)) - RECENT_MS
        ids = await self._file.read(partial(list_undecided, since, with_held))
        changed = 0
        for at in range(0, len(ids), PAGE):
            changed += await self._write(partial(decide_again, ids[at : at + PAGE], heads, self._rules, now))
        return changed

    async def decide_all(self, heads: ChainHeads, now: int) -> int:
        """Decide every transfer anew, page by page. Return the changes."""
        changed, last = 0, b""
        while ids := await self._file.read(partial(list_ids, last)):
            changed += await self._write(partial(decide_again, ids, heads, self._rules, now))
            last = ids[-1]
        return changed

    async def sum_booked(self, addresses: Sequence[bytes], through: int) -> list[int]:
        """Return what each address holds after a block by its transfers, dust and opening balance."""
        return await self._file.read(partial(sum_booked, addresses, through))

    async def open_wallet(self, address: bytes, amount: int, mark: ScanMark) -> None:
        """Record what a wallet held beside its transfers when it was first read. The first such record stays."""
        await self._write(partial(open_wallet, address, amount, mark))

    async def list_unopened(self) -> list[bytes]:
        """Return the wallets whose opening balance is not known."""
        return await self._file.read(partial(list_unopened, self._rules.wallets))

    async def set_differences(self, differences: Sequence[BalanceDifference], mark: ScanMark) -> None:
        """Replace the addresses whose transfers do not add up."""
        await self._write(partial(set_differences, differences, mark))


def find_mark(name: str, db: SqlConnection) -> ScanMark | None:
    row = db.execute("SELECT block, at FROM chain_scan WHERE name=?", (name,)).fetchone()
    return None if row is None else ScanMark(*row)


def set_mark(name: str, mark: ScanMark, db: SqlConnection) -> None:
    db.execute(
        "INSERT INTO chain_scan VALUES(?,?,?) ON CONFLICT(name) DO UPDATE SET block=excluded.block, at=excluded.at",
        (name, *mark),
    )


def find_start(db: SqlConnection) -> int | None:
    firsts = (
        "SELECT min(created_at) FROM purchase",
        "SELECT min(created_at) FROM old_quote",
        "SELECT min(begun_at) FROM x402_payment",
    )
    times = [db.execute(sql).fetchone()[0] for sql in firsts]
    return min((int(time) for time in times if time is not None), default=None)


_OPEN = """SELECT address FROM purchase WHERE state='quoted' AND expires_at > ? AND hd_index IS NOT NULL
  ORDER BY expires_at DESC LIMIT ?"""
_PAID = """SELECT p.address FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.credited_at >= ? AND p.hd_index IS NOT NULL ORDER BY c.credited_at DESC LIMIT ?"""
_REVERSED = """SELECT p.address FROM tx_reversal r JOIN purchase p ON p.id = r.purchase WHERE r.at >= ?
  ORDER BY r.at DESC LIMIT ?"""
_PAYEES = "SELECT payee FROM chain_transfer WHERE inward=1 AND block_number >= ? ORDER BY block_number DESC LIMIT ?"
_PAYERS = "SELECT payer FROM chain_transfer WHERE outward=1 AND block_number >= ? ORDER BY block_number DESC LIMIT ?"


def list_hot(
    wallets: frozenset[bytes], first_block: int, since: int, now: int, most: Most, db: SqlConnection
) -> HotAddresses:
    """Return the addresses with an open quote or with money since a block or time (epoch ms), the newest if many."""
    documents = {bytes(row[0]) for sql in (_PAID, _REVERSED) for row in db.execute(sql, (since, most.paid))}
    moved = {bytes(row[0]) for sql in (_PAYEES, _PAYERS) for row in db.execute(sql, (first_block, most.paid))}
    quoted, paid = {bytes(row[0]) for row in db.execute(_OPEN, (now - DAY_MS, most.quoted))}, documents | moved
    return HotAddresses(sorted(paid | quoted | wallets), sorted(paid | wallets))


_EVER_MOVED = (
    "SELECT p.address FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE p.hd_index IS NOT NULL",
    "SELECT payee FROM chain_transfer WHERE inward=1",
    "SELECT payer FROM chain_transfer WHERE outward=1",
    "SELECT address FROM chain_dust",
    "SELECT address FROM chain_opening",
    "SELECT address FROM chain_difference",
)
_UNPAID = "SELECT address FROM purchase WHERE state='quoted' AND hd_index IS NOT NULL"
_NEWEST_UNPAID, _ENDED = f"{_UNPAID} ORDER BY expires_at DESC LIMIT ?", f"{_UNPAID} AND expires_at BETWEEN ? AND ?"


def list_compared(wallets: frozenset[bytes], last: int, now: int, db: SqlConnection) -> list[bytes]:
    due = set(wallets) | {bytes(row[0]) for sql in _EVER_MOVED for row in db.execute(sql)}
    due |= {bytes(row[0]) for row in db.execute(_NEWEST_UNPAID, (COMPARED_UNPAID,))}
    # A day of overlap: a final block is older than now, and what came at the end of a quote is not in it yet.
    due |= {bytes(row[0]) for row in db.execute(_ENDED, (last - DAY_MS, now))}
    size = 256 // ROUND_DAYS
    first = now // DAY_MS % ROUND_DAYS * size
    low, high = bytes([first]), bytes([first + size - 1]) + b"\xff" * 20
    for table in ("purchase", "old_quote"):
        sql = f"SELECT address FROM {table} WHERE hd_index IS NOT NULL AND address BETWEEN ? AND ?"
        due |= {bytes(row[0]) for row in db.execute(sql, (low, high))}
    return sorted(due)


def list_issued(wallets: frozenset[bytes], after: bytes, db: SqlConnection) -> list[bytes]:
    issued = {wallet for wallet in wallets if wallet > after}
    for table in ("purchase", "old_quote"):
        sql = f"SELECT address FROM {table} WHERE hd_index IS NOT NULL AND address > ? ORDER BY address LIMIT {PAGE}"
        issued |= {bytes(row[0]) for row in db.execute(sql, (after,))}
    issued |= {bytes(row[0]) for row in db.execute("SELECT address FROM chain_opening WHERE address > ?", (after,))}
    return sorted(issued)[:PAGE]


def list_in_blocks(first: int, last: int, db: SqlConnection) -> list[ChainTransfer]:
    sql = f"{_ROWS} block_number BETWEEN ? AND ? AND state != 'undone' ORDER BY block_number, log_index"
    return _read_rows(db, sql, (first, last))


def record(placed: Sequence[PlacedTransfer], heads: ChainHeads, rules: BookRules, now: int, db: SqlConnection) -> int:
    ours = _find_ours(db, {side for _, each in placed for side in (each.payer, each.payee)}, rules.wallets)
    stored = {row.id: row for row in _find_rows(db, [id for id, _ in placed])}
    removed = _find_removed(db, [id for id, _ in placed if id not in stored])
    rows = [_place(one, stored.get(one.id), ours) for one in placed if one.id not in removed]
    return _store(db, _decide(db, rows, frozenset(), heads, rules), stored, now)


def record_gone(ids: Sequence[bytes], heads: ChainHeads, rules: BookRules, now: int, db: SqlConnection) -> int:
    stored = {row.id: row for row in _find_rows(db, ids)}
    return _store(db, _decide(db, list(stored.values()), frozenset(ids), heads, rules), stored, now)


def decide_again(ids: Sequence[bytes], heads: ChainHeads, rules: BookRules, now: int, db: SqlConnection) -> int:
    stored = {row.id: row for row in _find_rows(db, ids)}
    gone = frozenset(row.id for row in stored.values() if row.state == "undone")
    return _store(db, _decide(db, list(stored.values()), gone, heads, rules), stored, now)


def list_ids(after: bytes, db: SqlConnection) -> list[bytes]:
    sql = f"SELECT id FROM chain_transfer WHERE id > ? ORDER BY id LIMIT {PAGE}"
    return [bytes(id) for (id,) in db.execute(sql, (after,))]


def list_undecided(since: int, with_held: bool, db: SqlConnection) -> list[bytes]:
    """Return the ids of transfers that are pending, or to which a document belongs that is newer than a time."""
    hashes = {bytes(tx) for sql in _RECENT_DOCUMENTS for (tx,) in db.execute(sql, (since,)) if tx is not None}
    addresses = {bytes(row[0]) for sql in (_PAID, _REVERSED) for row in db.execute(sql, (since, HOT.paid))}
    ids = {bytes(id) for (id,) in db.execute("SELECT id FROM chain_transfer WHERE state='pending'")}
    if with_held:
        ids |= {bytes(id) for (id,) in db.execute("SELECT id FROM chain_transfer WHERE state='held'")}
    for column, values in (("tx_hash", hashes), ("payee", addresses)):
        for condition, parameters in _conditions(db, column, values):
            inward = "" if column == "tx_hash" else " AND inward=1"
            ids |= {
                bytes(id)
                for (id,) in db.execute(f"SELECT id FROM chain_transfer WHERE {condition}{inward}", parameters)
            }
    return sorted(ids)


_RECENT_DOCUMENTS = (
    "SELECT tx_hash FROM tx_credit WHERE credited_at >= ?",
    "SELECT tx_hash FROM tx_credit WHERE coalesce(agreed_at, disputed_since) >= ? AND disputed_since IS NOT NULL",
    "SELECT tx_hash FROM tx_reversal WHERE at >= ?",
    "SELECT tx_hash FROM payment_review WHERE coalesce(approved_at, at) >= ?",
    "SELECT tx_hash FROM x402_payment WHERE coalesce(answered_at, begun_at) >= ?",
    """SELECT p.tx_hash FROM x402_payment p JOIN x402_confirmation c ON c.payload = p.payload
      WHERE c.disputed_since IS NOT NULL AND coalesce(c.agreed_at, c.disputed_since) >= ?""",
    "SELECT tx_hash FROM refund WHERE coalesce(ended_at, booked_at, asked_at) >= ?",
)


def list_dust_counted(db: SqlConnection) -> dict[bytes, int]:
    return {bytes(address): int(through) for address, through in db.execute("SELECT address, through FROM chain_dust")}


def add_dust(dust: Mapping[bytes, Dust], db: SqlConnection) -> None:
    added = ", ".join(f"{name} = chain_dust.{name} + excluded.{name}" for name in Dust._fields[:-1])
    more = f"ON CONFLICT(address) DO UPDATE SET {added}, through = excluded.through"
    insert(db, "INSERT INTO chain_dust VALUES", [(address, *sums) for address, sums in dust.items()], more)


def forget_dust(addresses: Sequence[bytes], db: SqlConnection) -> None:
    for condition, parameters in _conditions(db, "address", addresses):
        db.execute(f"DELETE FROM chain_dust WHERE {condition}", parameters)


def sum_booked(addresses: Sequence[bytes], through: int, db: SqlConnection) -> list[int]:
    sums: Counter[bytes] = Counter()
    for column, sign, flag in (("payee", 1, "inward"), ("payer", -1, "outward")):
        for condition, parameters in _conditions(db, column, addresses):
            sql = f"""SELECT {column}, sum(amount) FROM chain_transfer
              WHERE {condition} AND {flag}=1 AND block_number <= ? AND state != 'undone' GROUP BY {column}"""
            for address, amount in db.execute(sql, (*parameters, through)):
                sums[bytes(address)] += sign * int(amount)
    for sql in ("received_amount - sent_amount FROM chain_dust", "amount FROM chain_opening"):
        for condition, parameters in _conditions(db, "address", addresses):
            for address, amount in db.execute(f"SELECT address, {sql} WHERE {condition}", parameters):
                sums[bytes(address)] += int(amount)
    return [sums[address] for address in addresses]


def open_wallet(address: bytes, amount: int, mark: ScanMark, db: SqlConnection) -> None:
    db.execute("INSERT INTO chain_opening VALUES(?,?,?,?) ON CONFLICT DO NOTHING", (address, amount, *mark))


def list_unopened(wallets: frozenset[bytes], db: SqlConnection) -> list[bytes]:
    return sorted(wallets - {bytes(row[0]) for row in db.execute("SELECT address FROM chain_opening")})


def set_differences(differences: Sequence[BalanceDifference], mark: ScanMark, db: SqlConnection) -> None:
    db.execute("DELETE FROM chain_difference")
    insert(db, "INSERT INTO chain_difference VALUES", [(*one, *mark) for one in differences])


def _read_rows(db: SqlConnection, sql: str, parameters: Sequence[Any]) -> list[ChainTransfer]:
    return [ChainTransfer(*row) for row in db.execute(sql, parameters)]


def _conditions(db: SqlConnection, column: str, values: Iterable[bytes]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the condition that a column has one of these values, in pages that a statement can hold."""
    ordered = sorted(set(values))
    for at in range(0, len(ordered), PAGE):
        yield among_values(db, column, ordered[at : at + PAGE])


def _find_rows(db: SqlConnection, ids: Iterable[bytes]) -> list[ChainTransfer]:
    return [row for where, values in _conditions(db, "id", ids) for row in _read_rows(db, _ROWS + where, values)]


def _find_removed(db: SqlConnection, ids: Iterable[bytes]) -> set[bytes]:
    """Return those with a history and without a row, which somebody removed: a difference to be named, not mended."""
    sql = "SELECT DISTINCT transfer FROM chain_change WHERE "
    return {
        bytes(id) for where, values in _conditions(db, "transfer", ids) for (id,) in db.execute(sql + where, values)
    }


def _find_ours(db: SqlConnection, addresses: Collection[bytes], wallets: frozenset[bytes]) -> set[bytes]:
    """Return those of some addresses that were issued by us or are wallets that we watch."""
    ours = set(wallets & frozenset(addresses))
    for table in ("purchase", "old_quote"):
        for condition, parameters in _conditions(db, "address", addresses):
            sql = f"SELECT address FROM {table} WHERE hd_index IS NOT NULL AND {condition}"
            ours |= {bytes(row[0]) for row in db.execute(sql, parameters)}
    return ours


def _place(one: PlacedTransfer, stored: ChainTransfer | None, ours: Collection[bytes]) -> ChainTransfer:
    """Return the row of a transfer where the chain has it now. The state is decided later."""
    each = one.logged
    return ChainTransfer(
        one.id,
        each.tx_hash,
        each.payer,
        each.payee,
        each.amount,
        int(each.payee in ours),
        int(each.payer in ours),
        each.block_number,
        each.block_hash,
        (each.block_time or 0) * 1000,
        each.log_index,
        "pending",
        0 if stored is None else stored.changes,
    )


def _store(db: SqlConnection, rows: Sequence[ChainTransfer], stored: Mapping[bytes, ChainTransfer], now: int) -> int:
    """Write the rows that are new or differ from what is stored, with a line of history for each."""
    changed = [row._replace(changes=row.changes + 1) for row in rows if row != stored.get(row.id)]
    insert(db, f"INSERT INTO chain_transfer({_COLUMNS}) VALUES", [row for row in changed if row.id not in stored])
    moved = "inward=?, outward=?, block_number=?, block_hash=?, block_time=?, log_index=?, state=?, changes=?"
    for row in changed:
        if row.id in stored:
            db.execute(f"UPDATE chain_transfer SET {moved} WHERE id=?", (*row[5:], row.id))
    history = [(row.id, row.changes, row.state, row.block_number, row.block_hash, now) for row in changed]
    insert(db, "INSERT INTO chain_change VALUES", history)
    for tx_hash in {row.tx_hash for row in changed if "undone" in (row.state, _find_state(stored.get(row.id)))}:
        weigh_credit(tx_hash, now, db)
    return len(changed)


def _find_state(row: ChainTransfer | None) -> TransferState | None:
    return None if row is None else row.state


class Documents(NamedTuple):
    """What our tables say about some transactions and the addresses that they paid."""

    purchases: Mapping[bytes, QuotedAddress]
    credits: Mapping[bytes, Any]
    held: frozenset[tuple[bytes, bytes]]
    signed: Mapping[tuple[bytes, bytes, int], SignedPayment]
    sweeps: frozenset[tuple[bytes, bytes, int, bytes | None]]
    refunds: frozenset[tuple[bytes, bytes, int, bytes | None]]
    paid: Mapping[tuple[bytes, bytes], int]


def _decide(
    db: SqlConnection, rows: list[ChainTransfer], gone: frozenset[bytes], heads: ChainHeads, rules: BookRules
) -> list[ChainTransfer]:
    """Return the rows with their states."""
    documents = _read_documents(db, rows, rules)
    return [row._replace(state=decide_state(_gather(row, documents, row.id in gone, heads, rules))) for row in rows]


def _gather(
    row: ChainTransfer, documents: Documents, is_gone: bool, heads: ChainHeads, rules: BookRules
) -> TransferFacts:
    """Return what is known about one transfer."""
    terms, paid = (row.payer, row.payee, row.amount), documents.paid.get((row.tx_hash, row.payee), row.amount)
    credit, purchase = documents.credits.get(row.tx_hash), documents.purchases.get(row.payee)
    is_credited = credit is not None and credit.counts(row, paid)
    if credit is not None and not is_credited and purchase is not None:
        purchase = purchase._replace(is_credited=True)  # a transaction buys once, and this one has bought elsewhere
    return TransferFacts(
        is_gone=is_gone,
        is_final=is_final_enough(rules.policy, heads, row.block_number, row.amount),
        is_swept=bool(documents.sweeps & {(*terms, row.tx_hash), (*terms, None)}),
        is_refund=(*terms, row.tx_hash) in documents.refunds,
        is_inward=bool(row.inward),
        is_credited=is_credited,
        is_disputed=is_credited and credit is not None and credit.is_disputed,
        is_held=(row.tx_hash, row.payee) in documents.held,
        signed=documents.signed.get((row.tx_hash, row.payer, row.amount)) if row.payee in rules.wallets else None,
        purchase=purchase,
        paid=paid,
        block_time=row.block_time,
    )


class BookedCredit(NamedTuple):
    """A transaction that was credited: to the purchase of which address, for how much, and by which logs."""

    address: bytes
    amount: int
    logs: frozenset[int]
    is_disputed: bool

    def counts(self, row: ChainTransfer, paid: int) -> bool:
        """Return True if a transfer is part of it. `paid` is all that the transaction paid to the same address."""
        return row.payee == self.address and (paid == self.amount or row.log_index in self.logs)


def _read_documents(db: SqlConnection, rows: Sequence[ChainTransfer], rules: BookRules) -> Documents:
    hashes, payees = {row.tx_hash for row in rows}, {row.payee for row in rows if row.inward}
    leaving = {row.payer for row in rows if row.outward}
    paid: Counter[tuple[bytes, bytes]] = Counter()
    known = {row.id for row in rows}
    for id, tx, payee, amount in _select(db, _STORED, "tx_hash", hashes):
        if id not in known:
            paid[tx, payee] += amount
    for row in rows:
        paid[row.tx_hash, row.payee] += row.amount
    signed = _select(db, _SIGNED, "p.tx_hash", hashes) + _select(db, _SIGNED_AGAIN, "c.tx_hash", hashes)
    return Documents(
        purchases={
            address: QuotedAddress(ends_at + rules.grace_ms, bool(tx))
            for sql, column in ((_OLD_QUOTES, "address"), (_PURCHASES, "p.address"))
            for address, ends_at, tx in _select(db, sql, column, payees)
        },
        credits={
            tx: BookedCredit(address, amount, frozenset(json.loads(logs)), bool(disputed))
            for tx, address, amount, logs, disputed in _select(db, _CREDITS, "c.tx_hash", hashes)
        },
        held=frozenset((tx, address) for tx, address in _select(db, _HELD, "r.tx_hash", hashes)),
        signed={
            (tx, payer, amount): SignedPayment(bool(settled), bool(case)) for tx, payer, amount, settled, case in signed
        },
        sweeps=frozenset(_select(db, _SWEEPS, "payer", leaving)),
        refunds=frozenset(_select(db, _REFUNDS, "payer", leaving)),
        paid=paid,
    )


_STORED = "SELECT id, tx_hash, payee, amount FROM chain_transfer WHERE state != 'undone' AND "
_PURCHASES = """SELECT p.address, p.expires_at, c.tx_hash FROM purchase p LEFT JOIN tx_credit c ON c.purchase = p.id
  WHERE p.hd_index IS NOT NULL AND """
_OLD_QUOTES = "SELECT address, expires_at, NULL FROM old_quote WHERE hd_index IS NOT NULL AND "
_CREDITS = """SELECT c.tx_hash, p.address, c.amount, c.logs,
    CASE WHEN c.disputed_since IS NOT NULL AND c.agreed_at IS NULL THEN 1 ELSE 0 END
  FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE c.chain_id = 8453 AND """
_HELD = """SELECT r.tx_hash, p.address FROM payment_review r JOIN purchase p ON p.id = r.purchase
  WHERE r.approved_at IS NULL AND """
_SIGNED_COLUMNS = """p.authorizer, p.amount, CASE WHEN p.state = 'settled' THEN 1 ELSE 0 END,
  CASE WHEN (p.token IS NULL AND p.answered_at IS NULL) OR (c.disputed_since IS NOT NULL AND c.agreed_at IS NULL)
    THEN 1 ELSE 0 END"""
_SIGNED = f"""SELECT p.tx_hash, {_SIGNED_COLUMNS} FROM x402_payment p
  LEFT JOIN x402_confirmation c ON c.payload = p.payload WHERE """
_SIGNED_AGAIN = f"""SELECT c.tx_hash, {_SIGNED_COLUMNS} FROM x402_confirmation c
  JOIN x402_payment p ON p.payload = c.payload WHERE """
_SWEEPS = "SELECT payer, payee, amount, tx_hash FROM sweep WHERE "
_REFUNDS = "SELECT payer, payee, amount, tx_hash FROM refund WHERE state IN ('sent', 'paid') AND "


def _select(db: SqlConnection, sql: str, column: str, values: Iterable[bytes]) -> list[tuple[Any, ...]]:
    """Return the rows of a query that has one of these values in a column. Bytes are bytes on both engines."""
    return [
        tuple(bytes(value) if isinstance(value, memoryview | bytearray) else value for value in row)
        for condition, parameters in _conditions(db, column, values)
        for row in db.execute(sql + condition, parameters)
    ]
