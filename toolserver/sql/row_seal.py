"""Seal the rows of every table of money, so that rows written without the key are found and named.

Anyone who can write to a database can drop its triggers and make all tables agree with each
other. So every writer keeps a seal in `writer_seal`: a sketch (`RowSketch`) of the rows that
it added minus those that it removed or replaced, by keyed digests. The sketches of all writers
add up to that of the rows that must be there. Each transaction replaces its writer's seal with
one whose head authenticates the sketch, the number of the transaction and the head before, so
the heads are a chain. Writers never wait for each other.

The key is in a file beside the database. Digests of rows are stored encrypted only: from plain
ones, other rows with the same sum could be found. A database that was replaced completely by
an older copy has valid seals; the marks that `high_water` keeps outside show that.

A sketch sums up the rows that a database should have in a few kilobytes, so that rows which
differ can be named. It has, for each table, the sum (XOR) of the keyed digests of its rows, and
a number of cells. Each row is added (XOR) to three of the cells too, with a short digest and its
name. A row that is added twice is removed again. So a sketch is updated row by row, the sketches
of several writers add up to one, and the difference of two sketches is the sketch of the rows in
which they differ. While these are few, some cells have exactly one of them: it is read and
removed from its other cells, which then may have one row, and so on.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolserver.core.private_file import write_private
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ConstraintViolated, RowsRewritten

THIRD = 16  # cells; a row is in one cell of each third
CELLS = 3 * THIRD
DIGEST = TOTAL = 26  # bytes of the keyed digest of a row, and so of the sum of a table
SHORT = 10  # the last bytes of the digest of a row, which its cells have too; the last two of them say which cells
CELL = 40  # bytes
NAME = 25  # bytes of the name of a row in a cell
_PRIME = 4_294_967_291  # the greatest below 2**32
_NAME_BITS, _TABLE_BITS, _CHECK_BITS = 8 * NAME, 8, 32
_CHECK_AT = _NAME_BITS + _TABLE_BITS
_SHORT_AT = _CHECK_AT + _CHECK_BITS
_SHORT_MASK = (1 << 8 * SHORT) - 1
_TAGS = [table << _NAME_BITS for table in range(256)]


class SketchedRow(NamedTuple):
    """A row that was read from a sketch: its short digest, the number of its table, and the start of its name."""

    short: int
    table: int
    name: str


class RowSketch:
    """The sums of tables and the cells, as whole numbers. `tables` is how many tables there are."""

    def __init__(self, tables: int) -> None:
        self.totals = [0] * tables
        self.cells = [0] * CELLS

    def toggle(self, table: int, name: str, digest: bytes) -> None:
        """Add a row by its digest, or remove the same row."""
        self.toggle_rows(table, (write_name(name),), (digest,))

    def toggle_rows(self, table: int, names: Iterable[bytes], digests: Iterable[bytes]) -> None:
        """Do this with many rows of a table. Their names are as `write_name` returns them."""
        total, cells, read = self.totals[table], self.cells, int.from_bytes
        for name, digest in zip(names, digests, strict=True):
            whole = read(digest)
            total ^= whole
            cell = _write_cell(whole & _SHORT_MASK, table, read(name))
            one = digest[-2]
            cells[one >> 4] ^= cell
            cells[16 + (one & 15)] ^= cell
            cells[32 + (digest[-1] & 15)] ^= cell
        self.totals[table] = total

    def pack(self) -> int:
        """Return the sketch as one number. The XOR of two such numbers is that of their sum."""
        cells = [cell.to_bytes(CELL, "big") for cell in self.cells]
        totals = [total.to_bytes(TOTAL, "big") for total in self.totals]
        return int.from_bytes(b"".join([*cells, *totals]), "little")

    @classmethod
    def unpack(cls, packed: int, tables: int) -> "RowSketch":
        """Return the sketch of such a number. Raises OverflowError if it has more tables."""
        sketch, text = cls(tables), packed.to_bytes(size_of(tables), "little")
        sketch.cells = [int.from_bytes(text[at : at + CELL]) for at in range(0, CELL * CELLS, CELL)]
        sketch.totals = [int.from_bytes(text[at : at + TOTAL]) for at in range(CELL * CELLS, len(text), TOTAL)]
        return sketch

    def read_rows(self) -> Iterator[SketchedRow]:
        """Yield the rows of the sketch that can be read, and remove them from its cells."""
        changed = True
        while changed:
            changed = False
            for place, cell in enumerate(self.cells):
                if (row := _read_cell(cell, place)) is not None:
                    self._remove(cell)
                    changed = True
                    yield row

    def split_cell(self, table: int, name: str, digest: bytes) -> list[SketchedRow]:
        """Return the two rows of a cell that has this row and one other, and remove both; empty if no cell has.

        So rows are found that `read_rows` leaves because they share all of their cells.
        """
        own = _write_cell(short_digest(digest), table, int.from_bytes(write_name(name)))
        for place in _places_of(own):
            other = self.cells[place] ^ own
            if self.cells[place] and (row := _read_cell(other, place)) is not None:
                self._remove(own)
                self._remove(other)
                return [SketchedRow(short_digest(digest), table, name), row]
        return []

    def _remove(self, cell: int) -> None:
        for place in _places_of(cell):
            self.cells[place] ^= cell

    @property
    def is_read(self) -> bool:
        """True if no row is left in the cells."""
        return not any(self.cells)


def size_of(tables: int) -> int:
    """Return the bytes of a packed sketch of so many tables."""
    return CELL * CELLS + TOTAL * tables


def write_name(name: str) -> bytes:
    """Return the part of a name that a cell has, as bytes."""
    return name.encode()[:NAME]


def cut_name(name: str) -> str:
    """Return the part of a name that a cell has."""
    return write_name(name).decode(errors="replace")


def short_digest(digest: bytes) -> int:
    """Return the part of a digest that a cell has."""
    return int.from_bytes(digest[-SHORT:])


def _places_of(cell: int) -> list[int]:
    """Return the places of the row that a cell has, as `RowSketch.toggle` finds them."""
    one, other = (cell >> _SHORT_AT & 0xFFFF).to_bytes(2)
    return [one >> 4, 16 + (one & 15), 32 + (other & 15)]


def _write_cell(short: int, table: int, named: int) -> int:
    # The square of a sum is no sum of squares, so that the sum of several rows does not look like one row.
    return (short << _CHECK_BITS | short * short % _PRIME) << _CHECK_AT | _TAGS[table] | named


def _read_cell(cell: int, place: int) -> SketchedRow | None:
    """Return the row of the cell at a place if it has exactly one, else None."""
    if not cell or place not in _places_of(cell):
        return None
    named, table = cell & (1 << _NAME_BITS) - 1, cell >> _NAME_BITS & 0xFF
    name, short = named.to_bytes(NAME).lstrip(b"\0"), cell >> _SHORT_AT
    if _write_cell(short, table, named) != cell:
        return None
    return SketchedRow(short, table, name.decode(errors="replace"))


TABLES = (
    *("account", "token", "transfer", "reservation", "allowance", "journal"),
    *("receipt", "no_charge", "log_node", "log_checkpoint", "no_charge_day"),
    *("purchase", "tx_credit", "tx_reversal", "unapplied_payment", "payment_review"),
    *("x402_payment", "x402_confirmation", "sweep"),
    *("old_quote", "refund", "reissue"),
    "uncharged_call",
    *("closed_month", "removed_calls"),
    *("owner_limits", "quote_limit"),
    "quote_topup",
    *("receipt_form", "packed_receipt", "removed_name"),
    *("chain_transfer", "chain_change", "chain_dust", "chain_opening"),
    "removed_block",
)
"""In the order of their sums. A migration that adds a table of money appends it; a file is then sealed again."""
NOT_SEALED = {
    "idempotency": "answers that are kept for a day; the receipt of a charge has the digest of its answer",
    "shared_result": "the bodies of such answers, by their digests",
    "lease": "which process does a task",
    "migration": "compared with the scripts at every start",
    "row_seal": "the seal of an earlier version",
    "writer_seal": "the seals themselves",
    "sqlite_sequence": "SQLite's own",
    "owner_alert": "notices about limits that wait to be sent",
    "webhook_subscription": "no money: each delivery that is paid has a reservation and a receipt",
    "webhook_fire": "as its subscription",
    "webhook_payload": "as its subscription",
    "webhook_unpaid": "as its subscription",
    "webhook_payer": "no money: how many bodies an account may still have for nothing",
    "chain_scan": "how far the chain was read",
    "chain_difference": "cases that the next reading of the chain writes again",
    "oauth_client": "no money: what a grant spends is an allowance",
    "oauth_request": "as its client",
    "oauth_grant": "as its client",
    "oauth_secret": "as its client",
}
"""The other tables of both engines, and why they need no seal."""
SIZE = 32  # bytes of a key and of a head
KEY = "keys/rows.json"  # below the data directory
FILE_WRITER = 0  # the writer of a file, in which one transaction at a time is written
NAMED = 5  # rows that are named for each table
_FIRST = bytes(SIZE)  # stands for the head before the first transaction of a writer
_COLUMNS = "writer, commits, at, before, nonce, sketch, head"
_STORE = f"""INSERT INTO writer_seal({_COLUMNS}) VALUES(?,?,?,?,?,?,?) ON CONFLICT(writer) DO UPDATE SET
  commits=excluded.commits, at=excluded.at, before=excluded.before, nonce=excluded.nonce, sketch=excluded.sketch,
  head=excluded.head"""


class WriterSeal(NamedTuple):
    """The seal of one writer as it is stored: how many transactions, when the last one was (epoch ms), the sketch."""

    writer: int
    commits: int
    at: int
    before: bytes
    nonce: bytes
    sketch: bytes
    head: bytes


class SealBroken(ConstraintViolated):
    """A stored seal was not made with our key. The transaction is not committed."""


class SealedRow(NamedTuple):
    """A row as it is sealed: its name in words, and its contents in the engine's own canonical form."""

    name: str
    contents: bytes


ReadRows = Callable[[str], Iterable[SealedRow]]
"""Returns the rows of a table, by its name."""


class RowSeal:
    """Makes and checks seals with one key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        row_key, self._mask_key, self._head_key = (
            hashlib.blake2b(use, key=key, digest_size=SIZE).digest() for use in (b"row 2", b"mask 2", b"head")
        )
        # Copied for each row of the table of this number, because creating one takes longer than hashing.
        self._new_rows = [hashlib.blake2b(bytes((table,)), key=row_key, digest_size=DIGEST) for table in range(256)]
        self._last: tuple[WriterSeal, int] | None = None  # the seal that a writer replaces is the last one that it made
        self.fingerprint = hashlib.blake2b(b"fingerprint", key=key, digest_size=SIZE).hexdigest()

    def digest(self, table: int, contents: bytes) -> bytes:
        """Return the keyed digest of a row of the table of this number."""
        return self.digest_rows(table, (contents,))[0]

    def digest_rows(self, table: int, contents: Iterable[bytes]) -> list[bytes]:
        """Return the digests of many rows of a table."""
        digests, new_row = list[bytes](), self._new_rows[table].copy
        for text in contents:
            hashed = new_row()
            hashed.update(text)
            digests.append(hashed.digest())
        return digests

    def store(self, db: SqlConnection, writer: int, before: WriterSeal | None, sketch: int, commits: int) -> WriterSeal:
        """Replace a writer's seal: after so many transactions its sketch is this one. Returns the seal."""
        seal = self._make(writer, _FIRST if before is None else before.head, sketch, commits)
        db.execute(_STORE, seal)
        return seal

    def follow(self, before: WriterSeal, sketch: int) -> WriterSeal:
        """Return the seal that follows a writer's seal, with this sketch."""
        return self._make(before.writer, before.head, sketch, before.commits + 1)

    def extend(self, db: SqlConnection, writer: int, changes: RowSketch) -> WriterSeal:
        """Seal the changes of one more transaction of a writer. Raises SealBroken if its last seal is not ours."""
        before = read_seal(db, writer)
        if before is None:
            return self.store(db, writer, None, changes.pack(), 1)
        return self.store(db, writer, before, self.open(before) ^ changes.pack(), before.commits + 1)

    def open(self, seal: WriterSeal) -> int:
        """Return the packed sketch of a seal. Raises SealBroken if it was not made with our key."""
        if (last := self._last) is not None and last[0] == seal:
            return last[1]
        if not hmac.compare_digest(seal.head, self._authenticate(seal)):
            raise SealBroken("the seal was not made with the key of this data directory")
        mask = self._mask(int.from_bytes(seal.sketch, "little"), seal.nonce, len(seal.sketch))
        return int.from_bytes(mask, "little")

    def sum_up(self, read: ReadRows, tables: Sequence[str]) -> RowSketch:
        """Return the sketch of all rows, with their names."""
        sketch = RowSketch(len(TABLES))
        for table in tables:
            number = TABLES.index(table)
            for row in read(table):
                sketch.toggle(number, row.name, self.digest(number, row.contents))
        return sketch

    def find_rewritten(self, seals: Sequence[WriterSeal], read: ReadRows, tables: Sequence[str]) -> list[str]:
        """Describe the rows of these tables that are not those that were sealed; empty if all are.

        Rows are read once, and a few times more if some are to be named.
        """
        try:
            sealed = _add_up(self.open(seal) for seal in seals)
        except SealBroken as error:
            return [str(error)]
        totals = RowSketch.unpack(sealed, len(TABLES)).totals
        if not [table for table in tables if self._total(table, read) != totals[TABLES.index(table)]]:
            return []
        differing = RowSketch.unpack(self.sum_up(read, tables).pack() ^ sealed, len(TABLES))
        return self._name_rows(differing, read, tables)

    def _total(self, table: str, read: ReadRows) -> int:
        number, total = TABLES.index(table), 0
        for row in read(table):
            total ^= int.from_bytes(self.digest(number, row.contents))
        return total

    def _name_rows(self, differing: RowSketch, read: ReadRows, tables: Sequence[str]) -> list[str]:
        """Say of each table which rows were changed, added or removed, as far as they can be told apart."""
        totals = differing.totals
        rows = list(differing.read_rows())
        while not differing.is_read and (more := self._split_cells(differing, read, tables)):
            rows += more
        found: list[str] = []
        for table in tables:
            if not totals[number := TABLES.index(table)]:
                continue
            found_here = [row for row in rows if row.table == number]
            names, shorts = {row.name for row in found_here}, {row.short for row in found_here}
            there = dict[str, bool]()  # by the names of rows that are there: whether theirs is one that was found
            for row in read(table):
                if (name := cut_name(row.name)) in names:
                    is_found = short_digest(self.digest(number, row.contents)) in shorts
                    there[name] = there.get(name, False) or is_found
            described = _describe(table, found_here, there)
            found += described if differing.is_read and described else [*described, f"{table}: more rows were changed"]
        return found

    def _split_cells(self, differing: RowSketch, read: ReadRows, tables: Sequence[str]) -> list[SketchedRow]:
        """Return rows that can be told apart with the help of the rows that are there."""
        found: list[SketchedRow] = []
        for table in tables:
            if differing.totals[number := TABLES.index(table)]:
                for row in read(table):
                    found += differing.split_cell(number, row.name, self.digest(number, row.contents))
        return [*found, *differing.read_rows()]

    def _make(self, writer: int, last: bytes, sketch: int, commits: int) -> WriterSeal:
        nonce = secrets.token_bytes(16)
        masked = self._mask(sketch, nonce, size_of(len(TABLES)))
        seal = WriterSeal(writer, commits, time.time_ns() // 1_000_000, last, nonce, masked, b"")
        seal = seal._replace(head=self._authenticate(seal))
        self._last = seal, sketch
        return seal

    def _authenticate(self, seal: WriterSeal) -> bytes:
        numbers = seal.writer.to_bytes(8) + seal.commits.to_bytes(8) + seal.at.to_bytes(8)
        text = numbers + seal.before + seal.nonce + seal.sketch
        return hashlib.blake2b(text, key=self._head_key, digest_size=SIZE).digest()

    def _mask(self, text: int, nonce: bytes, size: int) -> bytes:
        """Encrypt or decrypt a packed sketch."""
        mask = hashlib.shake_256(self._mask_key + nonce).digest(size)
        return (text ^ int.from_bytes(mask, "little")).to_bytes(size, "little")


def read_seal(db: SqlConnection, writer: int) -> WriterSeal | None:
    """Read the seal of a writer; None if there is none."""
    row = db.execute(f"SELECT {_COLUMNS} FROM writer_seal WHERE writer=?", (writer,)).fetchone()
    return WriterSeal(*row) if row else None


def read_seals(db: SqlConnection) -> list[WriterSeal]:
    """Read the seals of all writers."""
    return [WriterSeal(*row) for row in db.execute(f"SELECT {_COLUMNS} FROM writer_seal ORDER BY writer")]


def read_heads(db: SqlConnection) -> list[WriterSeal]:
    """Read the seals of all writers without their sketches."""
    rows = db.execute("SELECT writer, commits, at, before, nonce, before, head FROM writer_seal ORDER BY writer")
    return [WriterSeal(*row)._replace(sketch=b"") for row in rows]


def name_row(key: Sequence[Any]) -> str:
    """Return the name of a row in words: the values of its key, bytes as hexadecimal digits."""
    return " ".join(map(name_value, key))


def name_value(value: Any) -> str:
    """Return the name of a row whose key is this value alone."""
    return value.hex() if isinstance(value, bytes) else str(value)


def read_key(path: Path) -> bytes:
    """Read the key of a seal, and create it if there is none. Raises RowsRewritten if the file has no valid key."""
    if not path.exists():
        text = base64.urlsafe_b64encode(secrets.token_bytes(SIZE)).decode().rstrip("=")
        try:
            write_private(path, json.dumps({"kty": "oct", "k": text}) + "\n", replacing=False)
        except FileExistsError:
            pass  # by another process at the same time
    try:
        key = base64.urlsafe_b64decode(json.loads(path.read_bytes())["k"] + "=")
    except (ValueError, KeyError, TypeError) as error:
        raise RowsRewritten(f"{path} is not the key of a seal: {error}") from None
    if len(key) != SIZE:
        raise RowsRewritten(f"{path} is not the key of a seal: it has {len(key)} bytes")
    return key


def _add_up(sketches: Iterable[int]) -> int:
    total = 0
    for sketch in sketches:
        total ^= sketch
    return total


def _describe(table: str, rows: Sequence[SketchedRow], there: Mapping[str, bool]) -> list[str]:
    """Say of the rows in which a table differs which were changed, added and removed, at most `NAMED` of them.

    One that was changed is there with other contents, or with ours if we have written to it since.
    """
    counts = Counter(row.name for row in rows)
    added = {name for name, is_found in there.items() if is_found and counts[name] == 1}
    kinds = (("changed", there.keys() - added), ("added", added), ("removed", counts.keys() - there.keys()))
    lines = [f"{table} {name} was {what}" for what, names in kinds for name in sorted(names)]
    return lines if len(lines) <= NAMED else [*lines[:NAMED], f"{table}: {len(lines) - NAMED} more"]
