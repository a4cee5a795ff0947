"""Keep beside a database how far its seals have come, so that an older copy of it is noticed, with what it lacks.

The marks `rows` and `database_rows` in `keys/high-water.json` have the number of sealed
transactions, when the last of them was sealed, and the head of each writer. Versions before
had only the number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolserver.core.models import iso_of_ms
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.row_seal import WriterSeal

MARK, SERVER_MARK = "rows", "database_rows"  # of the file, and of the database that this data directory uses


@dataclass(frozen=True, slots=True)
class SealMark:
    """How many transactions were sealed, when the last one was (epoch ms; None if unknown), and by whom.

    `writers` has the number of transactions and the head (hex) of each writer.
    """

    commits: int = 0
    at: int | None = None
    writers: dict[str, tuple[int, str]] = field(default_factory=dict)


def find_mark(seals: Sequence[WriterSeal]) -> SealMark:
    """Return the mark of these seals."""
    writers = {str(seal.writer): (seal.commits, seal.head.hex()) for seal in seals}
    return SealMark(sum(seal.commits for seal in seals), max((seal.at for seal in seals), default=None), writers)


def read_mark(marks: HighWater, name: str = MARK) -> SealMark | None:
    """Read how far the seals had come when that was last noted; None if it never was. Raises MarksBroken."""
    return _parse(marks.read_own(name))


def note_seals(marks: HighWater, mark: SealMark, *, name: str = MARK, lower: bool = False) -> None:
    """Note how far the seals have come. An earlier state is noted only if `lower`. Raises MarksBroken."""

    def rule(before: Any) -> Any:
        known = _parse(before)
        if known is not None and not lower and (mark.commits, len(mark.writers)) <= (known.commits, len(known.writers)):
            return before
        return {"size": mark.commits, "at": mark.at, "writers": mark.writers}

    marks.change_own(name, rule)


def describe_older(here: SealMark | None, mark: SealMark | None, what: str) -> list[str]:
    """Say how many transactions a database lacks that were noted outside, and since when; empty if it lacks none."""
    if here is None or mark is None:
        return []
    if here.commits < mark.commits:
        lost = mark.commits - here.commits
        since = f", those after {iso_of_ms(here.at)}" if here.at is not None else ""
        until = f" (the last one was at {iso_of_ms(mark.at)})" if mark.at is not None else ""
        transactions = "transaction is" if lost == 1 else "transactions are"
        return [f"an older copy of {what}: {lost} {transactions} missing of {mark.commits}{since}{until}"]
    behind = [
        writer
        for writer, (commits, head) in mark.writers.items()
        if writer in here.writers and _is_behind(here.writers[writer], commits, head)
    ]
    return [f"an older copy of {what}: the transactions of writer {writer} differ" for writer in behind]


def _is_behind(here: tuple[int, str], commits: int, head: str) -> bool:
    return here[0] < commits or (here[0] == commits and here[1] != head)


def _parse(value: Any) -> SealMark | None:
    if value is None:
        return None
    try:
        if isinstance(value, int):
            return SealMark(commits=value)
        writers = {writer: (int(commits), str(head)) for writer, (commits, head) in value["writers"].items()}
        return SealMark(int(value["size"]), value["at"], writers)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MarksBroken(f"the mark of sealed rows cannot be read: {error!r}") from None
