"""The table at the end of a run: a line for each question, a column for each host and transport, and what was wrong."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """One line. `why` is empty where it is right."""

    host: str
    transport: str
    question: str
    right: bool
    why: str = ""


RIGHT, WRONG, NOT_ASKED = "yes", "NO", "-"
_CODE = re.compile(r"\b0x[0-9a-f]+\b")


def write_table(rows: Iterable[Row]) -> list[str]:
    """Return the lines: hosts and transports with their numbers, the grid, what was wrong, and the sum."""
    rows = [row._replace(question=_CODE.sub("0x…", row.question)) for row in rows]
    if not rows:
        return []
    columns = list(dict.fromkeys((row.host, row.transport) for row in sorted(rows, key=lambda row: row[:2])))
    cells = {(row.question, row.host, row.transport): RIGHT if row.right else WRONG for row in rows}
    width = max(len(row.question) for row in rows)
    lines = [f"{n:>3} {host}, {transport}" for n, (host, transport) in enumerate(columns, 1)]
    lines.append(" ".join([" " * width, *(f"{n:>3}" for n in range(1, len(columns) + 1))]))
    for question in dict.fromkeys(row.question for row in rows):
        line = [question.ljust(width), *(f"{cells.get((question, *column), NOT_ASKED):>3}" for column in columns)]
        lines.append(" ".join(line))
    lines += [f"WRONG {row.host}, {row.transport}: {row.question} {row.why}" for row in rows if not row.right]
    return [*lines, f"{sum(row.right for row in rows)} of {len(rows)} right"]
