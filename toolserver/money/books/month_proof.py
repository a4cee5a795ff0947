"""Verify the archive of a month on its own, with only the public keys.

The statement is signed and counts exactly these rows. Opening balances and transfers add up
to the closing balances. Credits and debits of all accounts are equal. Reservations match
their transfers. The transfers on the chain add up to its sums by way and state. Every receipt is signed. The leaves
of the log match what was booked.

What has to be compared with rows further on is put into a scratch database, which SQLite
keeps in a temporary file. So the memory needed does not grow with the month.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolserver.money.books.month_archive import ArchiveBroken, read_lines
from toolserver.money.books.sql_month_scratch import MonthScratch, open_scratch
from toolserver.money.receipts.keys import Key, unb64
from toolserver.money.receipts.log import BookedCall, add_up
from toolserver.money.receipts.month_statement import (
    CLOSING,
    ON_CHAIN,
    OPENING,
    MovedMoney,
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
            "usdc": statement.usdc,
            "on_chain": statement.on_chain and msgspec.to_builtins(statement.on_chain),
            "seals": statement.seals and {"commits": statement.seals.commits, "head": statement.seals.head},
            "log": {"size": statement.log.size, "root": statement.log.root},
            "sha256": self.signed.sha256,
            "previous": statement.previous,
            "problems": self.problems,
        }


def prove_month(path: Path, find_key: FindKey) -> MonthFacts:
    """Read an archive once and compare all of it. Raises ArchiveBroken if it is not an archive or is incomplete."""
    with open_scratch() as scratch:
        return _prove(path, _MonthProof(find_key, scratch))


def _prove(path: Path, proof: "_MonthProof") -> MonthFacts:
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
    return MonthFacts(signed, list(islice(proof.conclude(signed), SHOWN)))


def prove_months(paths: Iterable[Path], find_key: FindKey) -> list[MonthFacts]:
    """Verify several archives in the order of their months; each must follow the previous. Raises ArchiveBroken."""
    months = sorted((prove_month(path, find_key) for path in paths), key=lambda facts: facts.signed.statement.until)
    for before, facts in pairwise(months):
        facts.problems.extend(find_gap(before.signed, facts.signed))
    return months


class _MonthProof:
    """Takes the rows of an archive in order, and finally reports what does not match."""

    def __init__(self, find_key: FindKey, scratch: MonthScratch) -> None:
        self._find_key, self._scratch = find_key, scratch
        self._problems: list[str] = []
        # by table: the digest and the number of its rows
        self._digests: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._owed_before = self._owed_after = 0  # credits owed to buyers
        self._used = self._given_back = 0
        self._moved: dict[tuple[str, str], MovedMoney] = {}  # by way and state
        self._takes: dict[str, Callable[[Row], None]] = {
            OPENING: self._take_opening,
            "transfer": self._take_transfer,
            "reservation": self._take_reservation,
            "receipt": self._take_receipt,
            "uncharged_call": self._take_uncharged,
            "no_charge": self._take_leaf,
            ON_CHAIN: self._take_movement,
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
        self._scratch.finish()
        yield from self._problems
        yield from self._compare_calls()
        yield from self._compare_balances()
        yield from self._compare_figures(signed.statement.credits)
        yield from self._compare_money(signed.statement.on_chain or {})
        yield from self._compare_leaves()

    def _note(self, problem: str) -> None:
        if len(self._problems) < SHOWN:
            self._problems.append(problem)

    def _take_opening(self, row: Row) -> None:
        self._scratch.move(row["account"], row["credits"], row["debits"], row["pending"])
        self._owed_before += (row["credits"] - row["debits"]) * (row["account"] > OWN)

    def _take_closing(self, row: Row) -> None:
        self._scratch.add_closing(row["account"], row["credits"], row["debits"], row["pending"])
        self._owed_after += (row["credits"] - row["debits"]) * (row["account"] > OWN)

    def _take_transfer(self, row: Row) -> None:
        kind, debit, credit, amount = row["kind"], row["debit"], row["credit"], row["amount"]
        moved = amount if kind in ("posted", "post", "reverse") else 0
        self._scratch.move(debit, 0, moved, {"pending": amount, "post": -amount, "void": -amount}.get(kind, 0))
        self._scratch.move(credit, moved, 0, 0)
        if 2 in (debit, credit):
            reserving = row["seq"] if row["resolves"] is None else row["resolves"]
            self._scratch.add_step(reserving, row["seq"], kind, credit if kind == "reverse" else debit, amount)
            self._used += amount * (kind in ("posted", "post"))
            self._given_back += amount * (kind == "reverse")

    def _take_reservation(self, row: Row) -> None:
        self._scratch.add_call(row["call_id"], row["transfer"], row["state"], row["account"], row["credits"])

    def _take_receipt(self, row: Row) -> None:
        signer, core = row["key"], unb64(row["core"])
        key = self._find_key(key_id(signer))
        if key is None:
            self._note(f"{row['id']}: its key {key_id(signer)} is not in the key set")
        elif not key.verifies(unb64(row["signature"]), signing_input(signer, core)):
            self._note(f"{row['id']}: its signature is invalid")
        elif f'"id":"{row["id"]}"'.encode() not in core:
            self._note(f"{row['id']}: the signed text names another receipt")

    def _take_uncharged(self, row: Row) -> None:
        receipt = None if row["receipt"] is None else unb64(row["receipt"])
        booked = BookedCall(
            row["hour"], unb64(row["key"]), row["reason"], row["endpoint"], row["credits"], receipt, row["at"]
        )
        self._scratch.add_booked(booked)

    def _take_leaf(self, row: Row) -> None:
        if row["hour"] is not None:
            self._scratch.add_leaf(row["hour"], unb64(row["key"]), row["seq"], unb64(row["entry"]))

    def _take_movement(self, row: Row) -> None:
        key, sums = (row["way"], row["state"]), self._moved.get((row["way"], row["state"]), MovedMoney(0, 0, 0))
        self._moved[key] = MovedMoney(sums.transfers + 1, sums.received + row["received"], sums.sent + row["sent"])
        if row["history"][-1][0] != row["state"]:
            self._note(f"the transfer {row['tx_hash']} is {row['state']}, which is not the end of its history")

    def _compare_calls(self) -> Iterator[str]:
        for seq in self._scratch.find_unlike():
            yield f"transfer {seq} does not match its reservation"
        for call_id, state in self._scratch.find_otherwise():
            yield f"{call_id}: its transfers do not match its state, {state}"

    def _compare_balances(self) -> Iterator[str]:
        for account, total, closing in self._scratch.find_different():
            sums = f"opening balance and transfers add up to {total}, closing balance is {closing}"
            yield f"account {account}: {sums}"
        credits, debits = self._scratch.sum_closing()
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

    def _compare_money(self, signed: dict[str, dict[str, MovedMoney]]) -> Iterator[str]:
        said = {(way, state): sums for way, states in signed.items() for state, sums in states.items()}
        for way, state in sorted(said.keys() | self._moved.keys()):
            if said.get((way, state)) != self._moved.get((way, state)):
                yield f"on the chain, {way}, {state}: the rows do not add up to what the statement says"

    def _compare_leaves(self) -> Iterator[str]:
        for hour in self._scratch.read_hours():
            for total in add_up(hour):
                leaf = self._scratch.take_leaf(total.hour, total.key)
                if leaf is None or total.entry(leaf[0]) != leaf[1]:
                    yield f"{total.calls} calls, {total.reason} {total.endpoint}, are not in the log as booked"
        yield from (f"leaf {seq} reports more than was booked" for seq in self._scratch.list_leaves())
