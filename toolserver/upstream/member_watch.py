"""Notices that a source no longer gives a member that it gave before: it is null in every row of an answer.

Parsers read an absent optional member as null, so a member that an upstream removes looks like
one without a value. What is usual for each query tells the two apart: how many rows of its
earlier answers had the member. A member is missing if its absence from all rows would hardly
be chance. If it comes back, the rows without it count as usual nulls, so that a member which
is null every night is reported once.

Only queries with default arguments are counted, because callers may ask for places or things
for which a member never exists. A member that is missing there is also reported for callers'
queries whose rows all lack it.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from toolserver.upstream.source import Source

log = logging.getLogger(__name__)

LIST = "[]"  # ends the name of a member that is a list or a map
SAMPLE = 100  # rows of a list, evenly spaced, that are counted
LEAST_SEEN = 20  # rows before a member can be missing
LEAST_ROWS = 5  # rows that lack a member which earlier rows sometimes lacked, too
LEAST_ROWS_OF_LISTS = 20  # rows whose list is empty, which often has a common cause
CHANCE = 0.02  # the highest probability of chance for a member that was never null
CHANCE_OF_NULLS = 0.001  # the same for a member that was null at times, often in many rows together
MOST_SEEN = 5_000  # rows; above it both counts are halved, so that newer answers weigh more
FORGET_S = 90 * 86_400.0  # a member that is null for this long has become a null that is usual
SAVE_EVERY_S = 6 * 3_600.0
QUESTIONS = 100  # per source


@dataclass(slots=True)
class MemberCount:
    """The rows of a query's answers that had a member. `lacking` counts rows since it went missing, otherwise 0.

    `filled_at` is the time of the last answer that had it, in Unix seconds.
    """

    filled: int = 0
    seen: int = 0
    filled_at: float = 0.0
    lacking: int = 0

    def is_missing_from(self, rows: int, least: int = 1) -> bool:
        """Return True if it would hardly be chance that none of so many rows, at least `least`, has the member."""
        if rows < least or not self.filled or self.seen < LEAST_SEEN:
            return False
        if self.filled == self.seen:
            return rows * math.log(self.seen + 1) > -math.log(CHANCE)
        return rows >= LEAST_ROWS and rows * math.log1p(-self.filled / self.seen) < math.log(CHANCE_OF_NULLS)

    def add(self, filled: int, rows: int, at: float) -> None:
        """Count the rows of one more answer. If it has a missing member, the rows that lacked it count as usual."""
        if filled:
            self.seen += min(self.lacking, self.seen)
            self.lacking, self.filled_at = 0, at
        self.filled += filled
        self.seen += rows
        if self.seen > MOST_SEEN:
            nulls = math.ceil((self.seen - self.filled) / 2)  # never rounded to none
            self.seen = math.ceil(self.seen / 2)
            self.filled = self.seen - nulls


Counts = dict[str, MemberCount]

SaveMembers = Callable[[str, str, float, dict[str, dict[str, Any]]], None]
"""Saves the counts of a query: source, key of the query, time in Unix seconds, and each member's count."""


@dataclass(slots=True)
class _UsualMembers:
    """A query with default arguments: the count of each member, and when the counts were saved (Unix seconds)."""

    members: Counts
    saved_at: float

    @property
    def missing(self) -> set[str]:
        return {name for name, count in self.members.items() if count.lacking}


class MemberWatch:
    """Remembers which members each query's rows usually have. `save` gets the counts, so that a restart keeps them."""

    def __init__(self, save: SaveMembers | None = None) -> None:
        self._save = save
        self._questions: dict[str, LRUCache[str, _UsualMembers]] = {}  # by source
        self._gone: dict[str, frozenset[str]] = {}  # by source, of all queries: read at each fetch

    def restore(self, rows: Iterable[tuple[str, str, float, Mapping[str, Mapping[str, Any]]]]) -> None:
        """Restore stored counts `(source, key, saved_at, members)`, the oldest first."""
        for source, key, saved_at, members in rows:
            counts = {name: MemberCount(**count) for name, count in members.items()}
            self._find(source)[key] = _UsualMembers(counts, saved_at)
        for source in self._questions:
            self._note_gone(source)

    def learn(self, source: Source[Any, Any], key: str, value: Any, at: datetime) -> None:
        """Count the members of a new answer to a query with default arguments."""
        now, questions = at.timestamp(), self._find(source.name)
        is_new = key not in questions  # and may replace the one that was used least
        question = questions.setdefault(key, _UsualMembers({}, 0.0))
        before = question.missing
        for name, (filled, rows) in self._count(question, value).items():
            count = question.members.setdefault(name, MemberCount())
            least = LEAST_ROWS_OF_LISTS if name.endswith(LIST) else 1
            is_missing = not filled and (bool(count.lacking) or count.is_missing_from(rows, least))
            if is_missing and now - count.filled_at > FORGET_S:
                question.members[name] = MemberCount(seen=rows)
            elif is_missing:
                count.lacking += rows
            else:
                count.add(filled, rows, now)
        missing = question.missing
        if is_new or missing != before:
            self._note_gone(source.name)
        if missing != before:
            found = {"source": source.name, "missing": sorted(missing - before), "back": sorted(before - missing)}
            log.warning("members of a source are missing or back", extra=found)
        if self._save is not None and (missing != before or now - question.saved_at >= SAVE_EVERY_S):
            question.saved_at = now
            self._save(source.name, key, now, {name: asdict(count) for name, count in question.members.items()})

    def list_missing(self, source: Source[Any, Any], value: Any) -> tuple[str, ...]:
        """Return the members that are missing from a source's answer, by name."""
        gone = self._gone.get(source.name)
        if not gone:
            return ()
        counts = count_members(value, most=None)
        return tuple(
            sorted({name.split(".")[1].removesuffix(LIST) for name in gone if name in counts and not counts[name][0]})
        )

    def list_gone(self) -> list[tuple[str, str, float]]:
        """Return every missing member: its source, its name and when an answer last had it (Unix seconds)."""
        latest: dict[tuple[str, str], float] = {}
        for source, questions in self._questions.items():
            for question in questions.values():
                for name in question.missing:
                    latest[source, name] = max(latest.get((source, name), 0.0), question.members[name].filled_at)
        return [(source, name, at) for (source, name), at in sorted(latest.items())]

    def _note_gone(self, source: str) -> None:
        questions = self._questions[source].values()
        self._gone[source] = frozenset(name for question in questions for name in question.missing)

    def _find(self, source: str) -> LRUCache[str, _UsualMembers]:
        return self._questions.setdefault(source, LRUCache(QUESTIONS))

    def _count(self, question: _UsualMembers, value: Any) -> dict[str, tuple[int, int]]:
        """Return the counts of an answer; of all its rows, if the sample lacks a member that the query usually has."""
        counts = count_members(value, most=SAMPLE)
        usual = question.members
        if any(not filled and name in usual and usual[name].filled for name, (filled, _) in counts.items()):
            return count_members(value, most=None)
        return counts


def count_members(value: Any, *, most: int | None) -> dict[str, tuple[int, int]]:
    """Return how many rows of an answer have each member, and how many rows there are, by `Row.member`.

    A row is a NamedTuple anywhere in the answer, and a member one of its fields; the name of
    one that is a list or a map ends with LIST. None, "" and an empty list are no values. At
    most `most` rows of each list or map are counted, evenly spaced; all of them if None.
    """
    counts: dict[str, list[int]] = {}
    waiting = [value] if isinstance(value, tuple | list | Mapping) else []
    while waiting:
        each = waiting.pop()
        if not hasattr(each, "_fields"):
            rows = list(each.values()) if isinstance(each, Mapping) else each
            step = 1 if most is None else -(-len(rows) // most) or 1
            waiting += [row for row in rows[::step] if isinstance(row, tuple | list | Mapping)]
            continue
        kind = type(each).__name__
        for name, member in zip(each._fields, each, strict=True):
            ending, is_filled = "", member is not None and member != ""
            if isinstance(member, tuple | list | Mapping):
                waiting.append(member)
                if not hasattr(member, "_fields"):
                    ending, is_filled = LIST, bool(member)
            count = counts.setdefault(f"{kind}.{name}{ending}", [0, 0])
            count[0] += is_filled
            count[1] += 1
    return {name: (filled, rows) for name, (filled, rows) in counts.items()}
