"""Check everything about money: the ledger, buyers' statements, receipts, books, the log, and the chain.

Receipts and the log of uncharged calls are compared with the ledger's calls, row by row, from
the tables alone. The owner of a ledger stores a follower's call as `service:call_id`; the
follower has the receipts and no calls of its own, so its receipts are compared with the calls
in the owner's database.

Payments are compared with the chain: balances first, single transactions where balances fall
short. A deposit address holds what was paid to it, less what was swept. Where it holds less,
each transaction is looked up: either the money was moved by other means, which a note says,
or it never came, which is a difference.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolserver.money.books.month_proof import FindKey
from toolserver.money.books.sql_books import compare_books
from toolserver.money.books.sql_chain_differences import count_booked, find_chain_differences
from toolserver.money.books.sql_months import find_month_differences, list_closed
from toolserver.money.ledger.sql_books import EVER
from toolserver.money.ledger.sql_invariants import find_breaches, read_totals
from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.ledger.sql_statements import count_tokens, find_statement_differences
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import BATCH, ChainDown, RpcPool
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.matching import is_authorized_transfer, transfers
from toolserver.money.purchases.refunds import nonce_of
from toolserver.money.purchases.sql_sweeps import sum_swept
from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import Key
from toolserver.money.receipts.log import BucketTotal, LogMark, add_up, read_hour, show_hour, sum_by_day
from toolserver.money.receipts.sign import StoredReceipt, receipt_id
from toolserver.money.receipts.sql_store import (
    find_month,
    find_receipts,
    first_hour,
    last_checkpoint,
    last_hour,
    list_booked,
    log_size,
    read_receipts,
)
from toolserver.money.receipts.verify import Parsed, Unreadable, parse_receipt
from toolserver.sql.connection import SqlConnection, among, json_number, json_text
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import LedgerPlace, read_place

SHOWN = 20  # maximum number of differences listed for each check
MOST_LOOKED_UP = 1000  # transactions, the newest first
MOST_LISTED = 10_000  # receipts that the ledger does not know: each is one that somebody may ask about
DAY_MS = 86_400_000
KEPT_MS = 89 * DAY_MS  # receipts that are older may have been deleted

_DEPOSITS = """SELECT c.tx_hash, p.address, c.amount FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE EXISTS (SELECT 1 FROM purchase a WHERE a.address = p.address AND a.hd_index IS NOT NULL)
  ORDER BY c.credited_at DESC"""
_SIGNED = """SELECT coalesce(c.tx_hash, p.tx_hash), p.authorizer, p.amount, p.nonce FROM x402_payment p
  LEFT JOIN x402_confirmation c ON c.payload = p.payload
  WHERE p.state = 'settled' AND c.undone_at IS NULL ORDER BY p.settled_at DESC"""
_REFUNDS = "SELECT tx_hash, payer, payee, amount, id FROM refund WHERE state = 'paid' ORDER BY ended_at DESC"


class BooksCheck(NamedTuple):
    """One comparison: how much was compared and what differs. `note` says what was not compared and why, or how far."""

    name: str
    compared: int
    differences: list[str]
    note: str | None = None


class FollowedLedger(NamedTuple):
    """Another service's ledger that ours follows: our name there, and its file, if it is on this machine."""

    service: str
    path: Path | None


async def check_books(
    file: GroupCommit,
    place: LedgerPlace,
    mark: LogMark | None,
    now: int,
    followed: FollowedLedger | None = None,
    keys: Iterable[Key] = (),
) -> list[BooksCheck]:
    """Run every comparison that needs only our own rows, on one snapshot of them. Raises StorageFailed.

    The receipts of a service that follows a ledger are compared with the calls in that
    ledger's file. `keys` are those that signed closed months.
    """
    rewritten, unsealed = await file.find_rewritten(), await file.describe_sealing()
    checks = read_place(place, partial(_check, rewritten, mark, now, {key.kid: key for key in keys}.get))
    if unsealed is not None:
        checks = [check._replace(note=unsealed) if check.name == "ledger" else check for check in checks]
    return checks if followed is None else [_compare_followed(check, followed, place, now) for check in checks]


def _compare_followed(check: BooksCheck, followed: FollowedLedger, place: LedgerPlace, now: int) -> BooksCheck:
    """Return the check, with the receipts compared against the followed ledger."""
    if check.name != "receipts":
        return check
    if followed.path is None:
        return BooksCheck(check.name, 0, [], "not compared: the ledger is another service's; name its folder (--owner)")
    calls = read_place(followed.path, partial(list_calls_of, followed.service))
    horizon = read_place(followed.path, read_horizon)
    differences = read_place(place, lambda db: list(islice(find_follower_differences(calls, now, db, horizon), SHOWN)))
    return BooksCheck(check.name, check.compared, differences)


def check_held_receipts(place: LedgerPlace, lines: Iterable[str], keys: Iterable[Key]) -> BooksCheck:
    """Compare receipts that callers or logs still have with what the ledger and its archives know.

    Raises StorageFailed.
    """
    held, known = list(read_held_receipts(lines)), {key.kid: key for key in keys}
    differences = read_place(place, lambda db: list(islice(find_unknown_receipts(held, known.get, db), MOST_LISTED)))
    return BooksCheck("held_receipts", len(held), differences)


async def check_chain(place: LedgerPlace, chain: RpcPool | None) -> BooksCheck:
    """Compare payments and refunds with the chain, or say why they were not compared. Raises StorageFailed."""
    if chain is None:
        return BooksCheck("chain", 0, [], "not compared: no RPC server is configured (payments.rpc_urls)")
    claimed = read_place(place, _read_claimed)
    try:
        await chain.check_ready()
        audit = await compare_with_chain(claimed, chain)
    except ChainDown as down:
        return BooksCheck("chain", 0, [], f"not compared: {down}")
    return BooksCheck("chain", audit.compared, audit.differences[:SHOWN], "; ".join(audit.notes) or None)


def _check(
    rewritten: list[str], mark: LogMark | None, now: int, find_key: FindKey, db: SqlConnection
) -> list[BooksCheck]:
    def check(name: str, count: int, *differences: Iterable[str]) -> BooksCheck:
        return BooksCheck(name, count, [text for each in differences for text in islice(each, SHOWN)])

    breaches = (f"{breach.rule}: {breach.where}" for breach in find_breaches(db, 0))
    strange = (f"not written by this service: {where}" for where in rewritten)
    return [
        check("ledger", read_totals(db).transfers, strange, breaches),
        check("statements", count_tokens(db), find_statement_differences(db, now)),
        check("receipts", count_receipts(db), find_receipt_differences(db, now)),
        check("books", _count_payments(db), compare_books(db, 0, EVER)),
        check("log", count_logged(db), find_log_differences(db, mark), find_unlogged(db)),
        check("months", len(list_closed(db)), find_month_differences(db, find_key)),
        check("chain_book", count_booked(db), find_chain_differences(db)),
    ]


def _count_payments(db: SqlConnection) -> int:
    tables = ("tx_credit", "x402_payment", "refund")
    return sum(int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables)


class ClaimedTransfer(NamedTuple):
    """A payment as a table has it, in 0.000001 USDC. `payee` and `payer` are None where any address would do; `nonce`
    is that of the authorisation (EIP-3009) by which it was made, if any.
    """

    tx_hash: bytes
    payee: bytes | None
    payer: bytes | None
    amount: int
    nonce: bytes | None = None


class ClaimedMoney(NamedTuple):
    """The money in the tables: deposits that were credited, signed payments, refunds that were paid, and what was swept
    from each deposit address, in 0.000001 USDC.
    """

    deposits: list[ClaimedTransfer]
    signed: list[ClaimedTransfer]
    refunds: list[ClaimedTransfer]
    swept: Mapping[bytes, int]


class ChainFindings(NamedTuple):
    """The differences, the number of payments that were compared, and notes for a person."""

    differences: list[str]
    compared: int
    notes: list[str]


def _read_claimed(db: SqlConnection) -> ClaimedMoney:
    deposits = [ClaimedTransfer(bytes(tx), bytes(to), None, amount) for tx, to, amount in db.execute(_DEPOSITS)]
    signed = [ClaimedTransfer(bytes(tx), None, bytes(by), amount) for tx, by, amount, _ in db.execute(_SIGNED)]
    refunds = [
        ClaimedTransfer(bytes(tx), bytes(to), bytes(by), amount, nonce_of(id))
        for tx, by, to, amount, id in db.execute(_REFUNDS)
    ]
    return ClaimedMoney(deposits, signed, refunds, sum_swept(db))


async def compare_with_chain(claimed: ClaimedMoney, chain: RpcPool, *, most: int = MOST_LOOKED_UP) -> ChainFindings:
    """Compare all payments, of which at most `most` are looked up one by one. Raises ChainDown."""
    unexplained = await _find_unexplained(claimed, chain)
    to_look_up = [*unexplained, *claimed.refunds, *claimed.signed]
    looked_up, notes = to_look_up[:most], []
    said = [await _find_difference(one, chain) for one in looked_up]
    differences = [why for why in said if why is not None]
    moved = [one for one in unexplained if one in looked_up]
    if moved:
        usd = show_usd(sum(one.amount for one in moved))
        notes.append(f"{len(moved)} deposits of {usd} USDC were moved by other means than `sweep submit`")
    if len(to_look_up) > len(looked_up):
        notes.append(f"{len(to_look_up) - len(looked_up)} older payments were not looked up")
    compared = len(claimed.deposits) - len(unexplained) + len(looked_up)
    return ChainFindings(differences, compared, notes)


async def _find_unexplained(claimed: ClaimedMoney, chain: RpcPool) -> list[ClaimedTransfer]:
    """Return the deposits whose addresses hold less than was paid, even after what was swept is added."""
    paid: Counter[bytes] = Counter()
    for one in claimed.deposits:
        paid[one.payee or bytes(20)] += one.amount
    short: set[bytes] = set()
    addresses = list(paid)
    for at in range(0, len(addresses), BATCH):
        part = addresses[at : at + BATCH]
        pairs = zip(part, await chain.balances(part), strict=True)
        short |= {address for address, held in pairs if held + claimed.swept.get(address, 0) < paid[address]}
    return [one for one in claimed.deposits if (one.payee or bytes(20)) in short]


async def _find_difference(one: ClaimedTransfer, chain: RpcPool) -> str | None:
    """Return in words how the chain differs from the table about one payment, or None if it does not."""
    seen = await chain.observe(one.tx_hash, agreeing=min(2, len(chain)))
    if seen is None or not seen.is_canonical:
        return f"0x{one.tx_hash.hex()}: {show_usd(one.amount)} USDC are booked, but the chain does not have them"
    if one.nonce is not None and one.payer is not None and one.payee is not None:
        is_made = is_authorized_transfer(seen.receipt, one.payer, one.payee, one.amount, one.nonce)
        return None if is_made else _name(one, 0)
    paid = sum(t.amount for t in transfers(seen.receipt) if _fits(one, t.payer, t.payee))
    return None if paid >= one.amount and seen.receipt.status == 1 else _name(one, paid)


def _fits(one: ClaimedTransfer, payer: bytes, payee: bytes) -> bool:
    return one.payer in (None, payer) and one.payee in (None, payee)


def _name(one: ClaimedTransfer, paid: int) -> str:
    where = "" if one.payee is None else f" to {checksum_address(one.payee)}"
    return f"0x{one.tx_hash.hex()}: {show_usd(one.amount)} USDC{where} are booked, the chain has {show_usd(paid)}"


_JWS = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_STATES = "SELECT call_id, state, credits FROM reservation WHERE "
_POSTED = """SELECT call_id, credits FROM reservation
  WHERE call_id > ? AND state = 'posted' AND service = '' AND settled_at >= ? ORDER BY call_id LIMIT ?"""
PAGE = 2_000  # receipts or calls compared at a time
_OLD_SUMS = """
  SELECT day, {reason}, {endpoint},
    count(*), sum({credits}) FROM no_charge WHERE hour IS NULL GROUP BY 1, 2, 3"""
_REMOVED_SUMS = """
  SELECT day, {reason}, {endpoint},
    sum({calls}), sum({credits}) FROM no_charge WHERE hour < ? GROUP BY 1, 2, 3"""
_APPENDED = "SELECT DISTINCT hour FROM uncharged_call WHERE hour >= ? AND hour <= ? ORDER BY hour"
_BOOKED = "SELECT 1 FROM uncharged_call WHERE hour=? AND key=? AND receipt=?"


def _spell(db: SqlConnection, sql: str) -> str:
    """Return a query in which members of the JSON in `entry` are written in the syntax of the database's engine."""
    texts = {name: json_text(db, "entry", name) for name in ("endpoint", "reason")}
    return sql.format(**texts, **{name: json_number(db, "entry", name) for name in ("credits", "calls")})


def count_receipts(db: SqlConnection) -> int:
    """Return the number of stored receipts."""
    whole, packed = (db.execute(f"SELECT count(*) FROM {table}") for table in ("receipt", "packed_receipt"))
    return int(whole.fetchone()[0]) + int(packed.fetchone()[0])


def count_logged(db: SqlConnection) -> int:
    """Return the number of booked uncharged calls plus the number of leaves in the log."""
    booked = db.execute("SELECT count(*) FROM uncharged_call").fetchone()[0]
    return int(booked) + log_size(db)


def find_receipt_differences(db: SqlConnection, now: int) -> Iterator[str]:
    """Yield receipts that contradict the ledger, and charged calls of the 89 days before `now` (epoch ms) without one.

    A charge that was refunded after its receipt was signed is no difference: the statement
    and the log show it. A call that was paid by signature (x402) has a receipt, which names
    no balance, and nothing in the ledger. Rows of archived calls may have been removed before
    their receipts.
    """
    removed = read_horizon(db)
    receipts = read_receipts(db)
    while page := list(islice(receipts, PAGE)):
        yield from _compare_receipts(db, page, removed and removed + DAY_MS)
    last = ""
    while calls := db.execute(_POSTED, (last, now - KEPT_MS, PAGE)).fetchall():
        receipts_of_page = find_receipts(db, [receipt_id(call_id) for call_id, _ in calls])
        charged = {id: msgspec.json.decode(receipt.core)["credits_charged"] for id, receipt in receipts_of_page.items()}
        for call_id, credits in calls:
            if charged.get(receipt_id(call_id)) != credits:
                yield f"{call_id} was charged {credits} credits and has no receipt that says so"
        last = calls[-1][0]


def _compare_receipts(db: SqlConnection, receipts: Sequence[StoredReceipt], since: int) -> Iterator[str]:
    """Yield receipts that contradict the ledger. Calls from before `since` (epoch ms) may have been removed."""
    cores = [msgspec.json.decode(receipt.core) for receipt in receipts]
    wanted, call_ids = among(db, "call_id", [core["call_id"] for core in cores])
    states = {call_id: (state, credits) for call_id, state, credits in db.execute(_STATES + wanted, (call_ids,))}
    for receipt, core in zip(receipts, cores, strict=True):
        charged, (state, credits) = core["credits_charged"], states.get(core["call_id"], (None, 0))
        if state is None:
            is_wrong = charged != 0 and core["balance_after"] is not None and receipt.at >= since
        else:
            is_wrong = state == "open" or (state == "posted" and charged not in (0, credits))
        if is_wrong:
            ledger = "has no such call" if state is None else f"has it as {state}, for {credits} credits"
            yield f"{receipt.id} says {charged} credits were charged for {core['call_id']}; the ledger {ledger}"


def read_held_receipts(lines: Iterable[str]) -> Iterator[Parsed | str]:
    """Yield the receipts in lines of text: objects, or JWS anywhere in a line, as in a log; a sentence where one cannot
    be read.
    """
    for number, line in enumerate(lines, 1):
        for receipt in _find_receipts_in(line):
            try:
                yield parse_receipt(receipt)
            except Unreadable as error:
                yield f"line {number}: it is no receipt: {error}"


def _find_receipts_in(line: str) -> list[Any]:
    if line.lstrip().startswith("{"):
        try:
            found = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            found = None
        found = found.get("receipt", found) if isinstance(found, dict) else None
        if isinstance(found, str) or (isinstance(found, dict) and "signature" in found):
            return [found]
    return _JWS.findall(line)


def find_unknown_receipts(held: Iterable[Parsed | str], find_key: FindKey, db: SqlConnection) -> Iterator[str]:
    """Yield the receipts that somebody holds, that our keys signed, and that neither the ledger nor an archive has.

    These were acknowledged and then lost, as by a failover to a copy that was behind. Say what is no receipt of ours.
    """
    for one in held:
        if isinstance(one, str):
            yield one
            continue
        id, call_id, key = one.core["id"], one.core["call_id"], find_key(one.kid)
        if key is None or not key.verifies(one.signature, one.signed):
            yield f"{id}: none of our keys signed it"
        elif not find_receipts(db, [id]) and find_month(db, id) is None and not _has_call(db, call_id):
            facts = f"{one.core['credits_charged']} credits for {call_id}, {one.core['endpoint']}"
            whose = f"issued at {one.core['issued_at']} to token {one.core['token_fp']}"
            yield f"{id}: {facts}, {whose}: neither the ledger nor an archive has it"


def _has_call(db: SqlConnection, call_id: str) -> bool:
    return db.execute("SELECT 1 FROM reservation WHERE call_id=?", (call_id,)).fetchone() is not None


def find_log_differences(db: SqlConnection, mark: LogMark | None) -> Iterator[str]:
    """Yield the differences between booked calls, leaves, tree, sums, signed checkpoint and the mark outside the
    database.
    """
    size = log_size(db)
    nodes: dict[tuple[int, int], bytes] = {}
    stored = {(level, index): bytes(value) for level, index, value in db.execute("SELECT * FROM log_node")}
    for seq, entry in db.execute("SELECT seq, entry FROM no_charge ORDER BY seq"):
        for level, index, value in merkle.grow(lambda *place: nodes[place], seq, bytes(entry)):
            nodes[level, index] = value
    wrong = [place for place in nodes.keys() | stored.keys() if nodes.get(place) != stored.get(place)]
    yield from (f"node {place} of the log is not what its leaves say" for place in islice(sorted(wrong), 5))
    last = last_checkpoint(db)
    for name, state in (("signed checkpoint", last), ("mark outside the database", mark)):
        if state is not None and state.size > size:
            yield f"the log has {size} leaves, the {name} {state.size}"
        elif state is not None and merkle.root(lambda *place: nodes[place], state.size) != state.root:
            yield f"the first {state.size} leaves of the log are not those of the {name}"
    yield from _find_bucket_differences(db)


def _find_bucket_differences(db: SqlConnection) -> Iterator[str]:
    """Yield the leaves of closed hours and the sums by day that differ from what was booked."""
    sums = {
        (day, reason, endpoint): (n, credits) for day, reason, endpoint, n, credits in db.execute(_spell(db, _OLD_SUMS))
    }
    first = first_hour(db)
    for day, reason, endpoint, calls, credits in db.execute(_spell(db, _REMOVED_SUMS), (first,)):
        before = sums.get((day, reason, endpoint), (0, 0))
        sums[day, reason, endpoint] = (before[0] + int(calls), before[1] + int(credits))
    leaves = "SELECT hour, key, seq, entry FROM no_charge WHERE hour >= ?"
    leaves_by_bucket = {
        (hour, bytes(key)): (seq, bytes(entry)) for hour, key, seq, entry in db.execute(leaves, (first,))
    }
    for (hour,) in db.execute(_APPENDED, (first, last_hour(db))).fetchall():
        totals = add_up(list_booked(db, hour))
        for row in sum_by_day(totals):
            calls, credits = sums.get(row[:3], (0, 0))
            sums[row[:3]] = (calls + row.calls, credits + row.credits)
        for total in totals:
            yield from _compare_leaf(total, leaves_by_bucket.pop((total.hour, total.key), None))
    yield from (f"leaf {seq} says more than what was booked" for seq, _ in leaves_by_bucket.values())
    rows = db.execute("SELECT day, reason, endpoint, calls, credits FROM no_charge_day")
    said = {(day, reason, endpoint): (calls, credits) for day, reason, endpoint, calls, credits in rows}
    for key in sorted(said.keys() | sums.keys()):
        if said.get(key) != sums.get(key):
            yield f"{' '.join(key)}: the sum says (calls, credits) {said.get(key)}, the leaves {sums.get(key)}"


def _compare_leaf(total: BucketTotal, leaf: tuple[int, bytes] | None) -> Iterator[str]:
    where = f"{total.reason} {total.endpoint} in the hour {show_hour(total.hour)}"
    if leaf is None:
        yield f"{total.calls} calls, {where}, were booked and have no leaf in the log"
    elif total.entry(leaf[0]) != leaf[1]:
        yield f"leaf {leaf[0]} is not what was booked: {total.calls} calls, {where}"


def find_unlogged(db: SqlConnection) -> Iterator[str]:
    """Yield receipts of uncharged calls that are not at the place that they name: in the log, or among booked calls."""
    for receipt in read_receipts(db):
        id, core = receipt.id, msgspec.json.decode(receipt.core)
        if core.get("no_charge_reason") is None:
            continue
        place, digest = core.get("log") or {}, hashlib.sha256(receipt.core)
        if "index" in place:
            row = db.execute("SELECT entry FROM no_charge WHERE seq=? AND hour IS NULL", (place["index"],)).fetchone()
            if row is None or msgspec.json.decode(bytes(row[0]))["receipt_sha256"] != digest.hexdigest():
                yield f"{id} names leaf {place['index']} of the log, which is missing or belongs to another receipt"
        elif "key" in place:
            hour = read_hour(place["hour"])
            key = (hour, bytes.fromhex(place["key"]), digest.digest())
            if hour is not None and hour < first_hour(db):
                continue  # what was booked then is in an archive
            if db.execute(_BOOKED, key).fetchone() is None:
                yield f"{id} names the hour {place['hour']} of the log, where it was not booked"


class OwnersCall(NamedTuple):
    """A call of the follower as the owner's ledger has it."""

    state: str
    credits: int
    settled_at: int | None


def list_calls_of(service: str, db: SqlConnection) -> dict[str, OwnersCall]:
    """Return the calls of a follower in its owner's file, by the call_id that the follower uses."""
    start = f"{service}:"
    sql = "SELECT call_id, state, credits, settled_at FROM reservation WHERE substr(call_id, 1, ?) = ?"
    rows = db.execute(sql, (len(start), start))
    return {call_id.removeprefix(start): OwnersCall(*rest) for call_id, *rest in rows}


def find_follower_differences(
    calls: Mapping[str, OwnersCall], now: int, db: SqlConnection, horizon: int = 0
) -> Iterator[str]:
    """Yield receipts that contradict the owner's ledger, and charges without one in the 89 days before `now` (ms).

    A charge that was refunded after its receipt was signed is no difference, and neither is
    one that is being refunded. Before `horizon` (epoch ms) the owner may have removed calls.
    """
    said: dict[str, int] = {}
    for receipt in read_receipts(db):
        core = msgspec.json.decode(receipt.core)
        call_id, charged = core["call_id"], core["credits_charged"]
        if core["balance_after"] is None or charged == 0:
            continue
        said[call_id] = charged
        call = calls.get(call_id)
        if call is None and horizon and receipt.at < horizon + DAY_MS:
            continue
        if call is None or call.state == "open" or (call.state == "posted" and call.credits != charged):
            ledger = "has no such call" if call is None else f"has it as {call.state}, for {call.credits} credits"
            yield f"{receipt.id} says {charged} credits were charged for {call_id}; the ledger {ledger}"
    leaving = {call_id for (call_id,) in db.execute("SELECT call_id FROM journal")}
    for call_id, call in sorted(calls.items()):
        if call.state == "posted" and (call.settled_at or 0) >= now - KEPT_MS and call_id not in said.keys() | leaving:
            yield f"{call_id} was charged {call.credits} credits and has no receipt that says so"
