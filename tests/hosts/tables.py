"""The table at the end of a run: host, transport and question, right or wrong, and why."""

from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """One line. `why` is empty where it is right."""

    host: str
    transport: str
    question: str
    right: bool
    why: str = ""


def write_table(rows: Iterable[Row]) -> list[str]:
    """Return the lines of the table, with a line of sums."""
    rows = sorted(rows, key=lambda row: row[:2])
    if not rows:
        return []
    widths = [max(len(row[n]) for row in rows) for n in range(3)]
    lines = []
    for row in rows:
        cells = [str(cell).ljust(width) for cell, width in zip(row[:3], widths, strict=True)]
        lines.append(f"{'right' if row.right else 'WRONG'}  {'  '.join(cells)}  {row.why}".rstrip())
    return [*lines, f"{sum(row.right for row in rows)} of {len(rows)} right"]
