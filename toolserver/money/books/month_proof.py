"""Verify the archive of a month on its own, with only the public keys.

The statement is signed and counts exactly these rows. Opening balances and transfers add up
to the closing balances. Credits and debits of all accounts are equal. Reservations match
their transfers. Every receipt is signed. The leaves of the log match what was booked.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from toolserver.money.books.month_archive import ArchiveBroken, read_lines
from toolserver.money.receipts.keys import Key, unb64
from toolserver.money.receipts.log import BookedCall, add_up
from toolserver.money.receipts.month_statement import (
    CLOSING,
    OPENING,
    RowDigest,
    SignedMonth,
    StatementUnreadable,
    find_gap,
    parse_month,
)
from toolserver.money.receipts.sign import key_id, signing_input

SHOWN = 20  # maximum number of problems listed
OWN = 3  # accounts up to this number belong to the service

FindKey = Callable[[str], Key | None]
Row = dict[str, Any]


class MonthFacts(NamedTuple):
    """A verified archive: its statement, and its problems in words; no problems if everything is proved."""

    signed: SignedMonth
    problems: list[str]

    def describe(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        statement = self.signed.statement
        return {
            "ok": not self.problems,
            "month": statement.month,
            "service": statement.service,
            "rows": {name: table.rows for name, table in statement.tables.items()},
            "credits": statement.credits,
            "log": {"size": statement.log.size, "root": statement.log.root},
            "sha256": self.signed.sha256,
            "previous": statement.previous,
            "problems": self.problems,
        }


def prove_month(path: Path, find_key: FindKey) -> MonthFacts:
    """Read an archive once and compare all of it. Raises ArchiveBroken if it is not an archive or is incomplete."""
    proof = _MonthProof(find_key)
    table = ""
    columns: list[str] = []
    statement: str | None = None
    for line, content in read_lines(path):
        if isinstance(content, list):
            proof.take(table, dict(zip(columns, content, strict=False)), line)
        elif "table" in content:
            table, columns = content["table"], content["columns"]
            proof.begin(table)
        elif "statement" in content:
            statement = content["statement"]
    if statement is None:
        raise ArchiveBroken(f"{path} ends without a statement")
    try:
        signed = parse_month(statement)
    except StatementUnreadable as error:
        raise ArchiveBroken(f"the statement of {path} cannot be read: {error}") from None
    problems = list(proof.conclude(signed))
    return MonthFacts(signed, problems[:SHOWN])


def prove_months(paths: Iterable[Path], find_key: FindKey) -> list[MonthFacts]:
    """Verify several archives in the order of their months; each must follow the previous. Raises ArchiveBroken."""
    months = sorted((prove_month(path, find_key) for path in paths), key=lambda facts: facts.signed.statement.until)
    for before, facts in pairwise(months):
        facts.problems.extend(find_gap(before.signed, facts.signed))
    return months


class _MonthProof:
    """Takes the rows of an archive in order, and finally reports what does not match."""

    def __init__(self, find_key: FindKey) -> None:
        self._find_key = find_key
        self._problems: list[str] = []
        # by table: the digest and the number of its rows
        self._digests: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        # by account: credits, debits and pending, as opening balances and transfers add up to them, and at the end
        self._balances: dict[int, list[int]] = {}
        self._closing: dict[int, list[int]] = {}
        self._owed_before = self._owed_after = 0  # credits owed to buyers
        self._used = self._given_back = 0
        # calls by the transfer that reserved their credits: account and amount; once ended, with their state
        self._open: dict[int, tuple[int, int]] = {}
        self._ended: dict[int, tuple[str, int, int]] = {}
        # uncharged calls, and the leaves of the log by hour and key
        self._booked: list[BookedCall] = []
        self._leaves: dict[tuple[int, bytes], tuple[int, bytes]] = {}
        self._takes: dict[str, Callable[[Row], None]] = {
            OPENING: self._take_opening,
            "transfer": self._take_transfer,
            "reservation": self._take_reservation,
            "receipt": self._take_receipt,
            "uncharged_call": self._take_uncharged,
            "no_charge": self._take_leaf,
            CLOSING: self._take_closing,
        }

    def begin(self, table: str) -> None:
        """Begin a table. Raises ArchiveBroken if the table began before."""
        if table in self._digests:
            raise ArchiveBroken(f"the table {table} appears twice")
        self._digests[table], self._counts[table] = hashlib.sha256(), 0

    def take(self, table: str, row: Row, line: bytes) -> None:
        """Take a row. Raises ArchiveBroken if it does not belong to a table of a month."""
        try:
            self._digests[table].update(line)
            self._counts[table] += 1
            self._takes[table](row)
        except (KeyError, ValueError, TypeError) as error:
            raise ArchiveBroken(f"a row of {table or 'no table'} is invalid: {error!r}") from None

    def conclude(self, signed: SignedMonth) -> Iterator[str]:
        """Yield what does not match the statement, and earlier mismatches."""
        try:
            signed.require_signed(self._find_key(signed.kid))
        except StatementUnreadable as error:
            yield str(error)
        tables = {name: RowDigest(self._counts[name], self._digests[name].hexdigest()) for name in self._counts}
        for name in sorted(tables.keys() | signed.statement.tables.keys()):
            if tables.get(name) != signed.statement.tables.get(name):
                yield f"{name}: the rows differ from those that were signed"
        yield from self._problems
        yield from self._compare_balances()
        yield from self._compare_figures(signed.statement.credits)
        yield from self._compare_leaves()

    def _take_opening(self, row: Row) -> None:
        self._balances[row["account"]] = [row["credits"], row["debits"], row["pending"]]
        self._owed_before += (row["credits"] - row["debits"]) * (row["account"] > OWN)

    def _take_closing(self, row: Row) -> None:
        self._closing[row["account"]] = [row["credits"], row["debits"], row["pending"]]
        self._owed_after += (row["credits"] - row["debits"]) * (row["account"] > OWN)

    def _take_transfer(self, row: Row) -> None:
        kind, debit, credit, amount = row["kind"], row["debit"], row["credit"], row["amount"]
        for account in (debit, credit):
            self._balances.setdefault(account, [0, 0, 0])
        if kind in ("posted", "post", "reverse"):
            self._balances[debit][1] += amount
            self._balances[credit][0] += amount
        self._balances[debit][2] += {"pending": amount, "post": -amount, "void": -amount}.get(kind, 0)
        if 2 in (debit, credit):
            self._follow_call(row)

    def _follow_call(self, row: Row) -> None:
        """Record the progress of a call and what its transfer moved. `resolves` names the transfer that reserved."""
        kind, amount = row["kind"], row["amount"]
        reserving = row["seq"] if row["resolves"] is None else row["resolves"]
        if kind == "pending":
            self._open[reserving] = (row["debit"], amount)
            return
        buyer = row["credit"] if kind == "reverse" else row["debit"]
        reserved = self._open.pop(reserving, None)
        if reserved is None and reserving in self._ended:
            reserved = self._ended[reserving][1:]
        if reserved is not None and reserved != (buyer, amount):
            self._problems.append(f"transfer {row['seq']} does not match its reservation")
        self._ended[reserving] = ({"void": "voided", "reverse": "reversed"}.get(kind, "posted"), buyer, amount)
        self._used += amount * (kind in ("posted", "post"))
        self._given_back += amount * (kind == "reverse")

    def _take_reservation(self, row: Row) -> None:
        if self._ended.get(row["transfer"]) != (row["state"], row["account"], row["credits"]):
            self._problems.append(f"{row['call_id']}: its transfers do not match its state, {row['state']}")

    def _take_receipt(self, row: Row) -> None:
        signer, core = row["key"], unb64(row["core"])
        key = self._find_key(key_id(signer))
        if key is None:
            self._problems.append(f"{row['id']}: its key {key_id(signer)} is not in the key set")
        elif not key.verifies(unb64(row["signature"]), signing_input(signer, core)):
            self._problems.append(f"{row['id']}: its signature is invalid")
        elif f'"id":"{row["id"]}"'.encode() not in core:
            self._problems.append(f"{row['id']}: the signed text names another receipt")

    def _take_uncharged(self, row: Row) -> None:
        booked = BookedCall(
            hour=row["hour"],
            key=unb64(row["key"]),
            reason=row["reason"],
            endpoint=row["endpoint"],
            credits=row["credits"],
            receipt=None if row["receipt"] is None else unb64(row["receipt"]),
            at=row["at"],
        )
        self._booked.append(booked)

    def _take_leaf(self, row: Row) -> None:
        if row["hour"] is not None:
            self._leaves[row["hour"], unb64(row["key"])] = (row["seq"], unb64(row["entry"]))

    def _compare_balances(self) -> Iterator[str]:
        for account in sorted(self._balances.keys() | self._closing.keys()):
            total, closing = self._balances.get(account), self._closing.get(account)
            if total != closing:
                sums = f"opening balance and transfers add up to {total}, closing balance is {closing}"
                yield f"account {account}: {sums}"
        credits, debits = (sum(balance[place] for balance in self._closing.values()) for place in (0, 1))
        if credits != debits:
            yield f"the accounts have {credits} credits and {debits} debits"

    def _compare_figures(self, signed: dict[str, int]) -> Iterator[str]:
        totals = {
            "owed_before": self._owed_before,
            "owed": self._owed_after,
            "used": self._used,
            "given_back": self._given_back,
        }
        for name, total in totals.items():
            if total != signed.get(name):
                yield f"{name}: the rows add up to {total}, but the statement says {signed.get(name)}"

    def _compare_leaves(self) -> Iterator[str]:
        leaves = dict(self._leaves)
        for total in add_up(self._booked):
            seq, entry = leaves.pop((total.hour, total.key), (0, b""))
            if total.entry(seq) != entry:
                yield f"{total.calls} calls, {total.reason} {total.endpoint}, are not in the log as booked"
        yield from (f"leaf {seq} reports more than was booked" for seq, _ in leaves.values())
