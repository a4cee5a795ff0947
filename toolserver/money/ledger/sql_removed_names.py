"""Keeps the names of removed calls and receipts for ever, 256 in a row: 18 bytes of each stay in the database.

A name is 16 bytes, and with it goes the month whose archive has it. Blocks have their names in
order, and begin where the one before ends, so one look-up finds the only block that a name can
be in. Names of another shape, and those that earlier versions removed, are rows of
`removed_name`. Names of calls come in the order of their times, so a block is full before the
next one begins.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolserver.core.caller import pack_call_name
from toolserver.sql.connection import SqlConnection, among_values, hold_alone, insert

SIZE = 256  # names in a block
_NAME, _ENTRY = 16, 18  # bytes
_ROOM = "removed names"
_BLOCK = "SELECT first, names FROM removed_block WHERE first <= ? ORDER BY first DESC LIMIT 1"
_NEXT = "SELECT first FROM removed_block WHERE first > ? ORDER BY first LIMIT 1"
_OF_RECEIPT = "ON CONFLICT(name) DO UPDATE SET month=excluded.month"
_AT_ONCE = 32  # look-ups in a statement

Months = dict[bytes, int]
"""The months of names, as years and months in one number: 202701."""


def keep_names(db: SqlConnection, names: Mapping[bytes, int], *, are_receipts: bool) -> None:
    """Record these names with their months, within the caller's transaction.

    The month of a receipt replaces that of its call, because it may have been signed a month later.
    """
    hold_alone(db, _ROOM)
    rest = sorted(name for name in names if len(name) == _NAME)
    while rest:
        block, following = _find_block(db, rest[0])
        part = [name for name in rest if following is None or name < following]
        rest = rest[len(part) :] if _keep(db, block, {name: names[name] for name in part}, are_receipts) else rest
    others = [(name, month) for name, month in names.items() if len(name) != _NAME]
    insert(db, "INSERT INTO removed_name VALUES", others, _OF_RECEIPT if are_receipts else "ON CONFLICT DO NOTHING")


def find_months(db: SqlConnection, names: Sequence[bytes]) -> Months:
    """Return the months of those of these names that were removed."""
    found: Months = {}
    for at in range(0, len(names), _AT_ONCE):
        part = names[at : at + _AT_ONCE]
        wanted, values = among_values(db, "name", part)
        found |= {
            bytes(name): int(month)
            for name, month in db.execute(f"SELECT name, month FROM removed_name WHERE {wanted}", values)
        }
        ours = [name for name in part if len(name) == _NAME]
        ours += ours[-1:] * (-len(ours) % _AT_ONCE if len(ours) > 1 else 0)  # two statements, each prepared once
        if ours:
            sql = " UNION ALL ".join([f"SELECT * FROM ({_BLOCK}) AS block"] * len(ours))
            blocks = {bytes(first): names for first, names in db.execute(sql, ours)}
            there = {name: month for block in blocks.values() for name, month in _read_entries(bytes(block))}
            found |= {name: there[name] for name in ours if name in there}
    return found


def find_removed(db: SqlConnection, names: Sequence[str]) -> set[str]:
    """Return which of these calls were removed, given and returned by name: the id without its prefix."""
    packed = {pack_call_name(name): name for name in names}
    return {packed[name] for name in find_months(db, list(packed))}


def move_names(db: SqlConnection, after: Any, limit: int) -> bytes | None:
    """Move the next rows that earlier versions left into blocks. Returns the last name, or None if no more follow."""
    sql = f"SELECT name, month FROM removed_name WHERE name > ? AND length(name) = {_NAME} ORDER BY name LIMIT ?"
    rows = {bytes(name): int(month) for name, month in db.execute(sql, (after or b"", limit))}
    if not rows:
        return None
    keep_names(db, rows, are_receipts=True)
    wanted, values = among_values(db, "name", list(rows))
    db.execute(f"DELETE FROM removed_name WHERE {wanted}", values)
    return max(rows)


def _find_block(db: SqlConnection, name: bytes) -> tuple[Months | None, bytes | None]:
    """Return the block in which a name belongs, if there is one, and where the next block begins."""
    row = db.execute(_BLOCK, (name,)).fetchone()
    following = db.execute(_NEXT, (name,)).fetchone()
    block = None if row is None else dict(_read_entries(bytes(row[1])))
    return block, None if following is None else bytes(following[0])


def _keep(db: SqlConnection, block: Months | None, names: Months, are_receipts: bool) -> bool:
    """Add names to their block and to new ones behind it. Return False if the block was only split: try again."""
    before = block or {}
    whole = before | names if are_receipts else names | before
    if whole == before:
        return True
    ordered = sorted(whole)
    is_behind = not before or ordered[: len(before)] == list(before)
    if len(ordered) > SIZE and not is_behind:
        kept = list(before)
        half = len(kept) // 2
        _add_block(db, {name: before[name] for name in kept[half:]})
        _replace_block(db, {name: before[name] for name in kept[:half]})
        return False
    for at in range(0, len(ordered), SIZE):
        part = {name: whole[name] for name in ordered[at : at + SIZE]}
        if before and at == 0:
            _replace_block(db, part)
        else:
            _add_block(db, part)
    return True


def _add_block(db: SqlConnection, entries: Months) -> None:
    db.execute("INSERT INTO removed_block(first, names) VALUES(?, ?)", (min(entries), _write_entries(entries.items())))


def _replace_block(db: SqlConnection, entries: Months) -> None:
    db.execute("UPDATE removed_block SET names=? WHERE first=?", (_write_entries(entries.items()), min(entries)))


def _write_entries(entries: Iterable[tuple[bytes, int]]) -> bytes:
    return b"".join(name + (month // 100 * 12 + month % 100 - 1).to_bytes(2) for name, month in entries)


def _read_entries(block: bytes) -> Iterator[tuple[bytes, int]]:
    for at in range(0, len(block), _ENTRY):
        months = int.from_bytes(block[at + _NAME : at + _ENTRY])
        yield block[at : at + _NAME], months // 12 * 100 + months % 12 + 1
