"""Sum up the rows that a database should have in a few kilobytes, so that rows which differ can be named.

A sketch has, for each table, the sum (XOR) of the keyed digests of its rows, and a number of
cells. Each row is added (XOR) to three of the cells too, with a short digest and its name. A
row that is added twice is removed again. So a sketch is updated row by row, the sketches of
several writers add up to one, and the difference of two sketches is the sketch of the rows in
which they differ. While these are few, some cells have exactly one of them: it is read and
removed from its other cells, which then may have one row, and so on.

A sketch shows digests of rows, so it is stored encrypted only.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

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
