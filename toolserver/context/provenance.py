"""Records where the values of an answer come from, in `_meta` with its `sources[]` and in `warning[]`."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from toolserver.core.models import iso_or_none
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.network_watch import NoNetwork
from toolserver.upstream.source import Source, SourceExcluded

Status = Literal["live", "cached", "fallback", "stale", "error"]
Code = Literal[
    "section_unavailable",
    "unproved_empty",
    "stale_data",
    "partial",
    "fallback_used",
    "degraded_fallback",
    "field_missing",
    "missing_symbols",
    "disagreement",
    "implausible_jump",
    "change_not_removed",
    "truncated",
    "rows_dropped",
    "own_network_suspect",
    "no_network",
    "licence_excluded",
    "insufficient_sample",
    "incomplete_window",
    "default_location",
    "low_balance",
]


PASSING: frozenset[Code] = frozenset(
    {
        "section_unavailable",
        "unproved_empty",
        "stale_data",
        "partial",
        "implausible_jump",
        "missing_symbols",
        "no_network",
    }
)
"""Codes of conditions that end when an upstream is back. An answer with one is recomposed soon."""


NAMED = 5  # missing members that a warning names
NO_NETWORK = "This server has no network at the moment, so no source could be asked."


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an upstream's list a read covers."""

    part: str | None = None  # the part of the list that was read, or None for all of it
    dropped: int = 0  # rows that could not be read
    missing: tuple[str, ...] = ()  # members that the source used to give and that all rows now lack


@dataclass(frozen=True, slots=True)
class SourceNote:
    """One read of a source, from the upstream or the cache, for one section."""

    source: Source[Any, Any]
    section: str
    status: Status
    fetched_at: datetime | None = None
    reason: str | None = None
    replaces: str | None = None
    coverage: Coverage = Coverage()

    @property
    def part(self) -> str | None:
        """Return `coverage.part`. Deprecated, for tools that were written before there was a `Coverage`."""
        return self.coverage.part

    @property
    def dropped(self) -> int:
        """Return `coverage.dropped`. Deprecated, as `part` is."""
        return self.coverage.dropped

    @property
    def used(self) -> bool:
        """True if the payload contains a value of this source."""
        return self.status != "error"

    @property
    def barred(self) -> bool:
        """True if the licence policy excluded this source, which then has no part in the answer."""
        return self.status == "error" and (self.reason or "").startswith(SourceExcluded.word)

    def as_json(self, oldest: str | None = None) -> dict[str, Any]:
        """Return the entry of `_meta.sources[]`. The list of sources has the constant facts of the source.

        `oldest` is the answer's own time, which a used source with the same time does not repeat.
        """
        entry: dict[str, Any] = {"name": self.source.name, "section": self.section, "status": self.status}
        fetched_at = iso_or_none(self.fetched_at)
        if fetched_at is None or fetched_at != oldest or not self.used:
            entry["fetched_at"] = fetched_at
        if self.reason:
            entry["reason"] = self.reason
        if self.replaces:
            entry["replaces"] = self.replaces
        return entry


@dataclass(frozen=True, slots=True)
class Caveat:
    """A warning in an answer: one sentence that says what is missing or older than it should be."""

    section: str
    code: Code
    message: str
    source: str | None = None
    total: int | None = None
    count: int | None = None

    def as_json(self) -> dict[str, Any]:
        named = {"source": self.source} if self.source else {}
        numbers = {"total": self.total, "count": self.count}
        counted = {name: number for name, number in numbers.items() if number is not None}
        return {"section": self.section, **named, "code": self.code, "message": self.message[:200], **counted}


@dataclass(slots=True)
class Provenance:
    """The sources and warnings of one answer."""

    sources: list[SourceNote] = field(default_factory=list)
    stale_as_a_whole: bool | None = None
    warnings: list[Caveat] = field(default_factory=list)

    def add(self, notes: Iterable[SourceNote]) -> None:
        """Add notes. A source read twice for a section becomes one note, with the more severe status."""
        for note in notes:
            if (note.reason or "").startswith(NoNetwork.word):
                self.warn("data", "no_network", NO_NETWORK)
            self._warn_dropped(note)
            self._warn_missing(note)
            if (part := note.coverage.part) and note.used:
                self.warn(note.section, "insufficient_sample", f"Read was {part}.", note.source.name)
            twin = next(
                (i for i, n in enumerate(self.sources) if n.source is note.source and n.section == note.section), None
            )
            if twin is None:
                self.sources.append(note)
            else:
                self.sources[twin] = _merge(self.sources[twin], note)

    def warn(self, section: str, code: Code, message: str, source: str | None = None) -> None:
        warning = Caveat(section, code, message, source)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def _warn_dropped(self, note: SourceNote) -> None:
        dropped = note.coverage.dropped
        if not dropped or not note.used:
            return
        rows = "1 row" if dropped == 1 else f"{dropped:,} rows"
        message = f"{rows} of {note.source.name} could not be read and {'is' if dropped == 1 else 'are'} left out."
        warning = Caveat(note.section, "rows_dropped", message, note.source.name, count=dropped)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def _warn_missing(self, note: SourceNote) -> None:
        missing, source = note.coverage.missing, note.source.name
        if missing and note.used:
            names = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
            self.warn(note.section, "field_missing", f"{source} no longer gives {names}, which it gave before.", source)

    def warn_truncated(self, section: str, shown: int, total: int) -> None:
        """Add a warning that a list shows only some of its items, with the total."""
        message = f"{shown:,} of {total:,} are listed."
        self.warnings.append(Caveat(section, "truncated", message, total=total))

    def caveats(self) -> list[Caveat]:
        """Return the warnings sorted by section, code and source, so that their order does not depend on timing."""
        return sorted(self.warnings, key=lambda caveat: (caveat.section, caveat.code, caveat.source or ""))

    @property
    def degraded(self) -> bool:
        """Return True if a missing, stale, partial or unproved part may be available again at any time."""
        return any(caveat.code in PASSING for caveat in self.warnings)

    @property
    def withheld(self) -> bool:
        """Return True if our own pacing prevented a timely request to a source."""
        return any((note.reason or "").startswith(RequestWithheld.word) for note in self.sources)

    @property
    def is_offline(self) -> bool:
        """Return True if a source could not be asked because this machine had no network."""
        return any(caveat.code == "no_network" for caveat in self.warnings)

    @property
    def used(self) -> list[SourceNote]:
        return [note for note in self.sources if note.used]

    def count_sources(self, section: str = "") -> tuple[int, int]:
        """Return how many sources returned data and how many were queried without result, in one section or in all."""
        notes = [note for note in self.sources if note.section.startswith(section) and not note.barred]
        good = {note.source.name for note in notes if note.used}
        return len(good), len({note.source.name for note in notes if note.status == "error"} - good)

    @property
    def oldest_fetched_at(self) -> datetime | None:
        return min((n.fetched_at for n in self.used if n.fetched_at), default=None)

    @property
    def attribution(self) -> list[str]:
        return sorted({n.source.licence.attribution for n in self.used})

    def stale(self, share: float = 0.0) -> bool:
        """Return True if more than this share of the used values is stale."""
        if self.stale_as_a_whole is not None:
            return self.stale_as_a_whole
        used = self.used
        return sum(n.status == "stale" for n in used) > share * len(used)

    def meta(self, *, stale: bool) -> dict[str, Any]:
        """Return the `_meta` object of an answer. It describes only the composition, not a single call.

        Sources are sorted by section and name, so that their order does not depend on timing.
        The time of the oldest is the answer's own, and is not repeated in the entries.
        """
        oldest = iso_or_none(self.oldest_fetched_at)
        return {
            "sources": [note.as_json(oldest) for note in sorted(self.sources, key=_sort_key) if not note.barred],
            "attribution": self.attribution,
            "untrusted_text": any(n.source.untrusted for n in self.used),
            "stale": stale,
        }


def _sort_key(note: SourceNote) -> tuple[str, bool, str]:
    return note.section, not note.used, note.source.name


_SEVERITY: dict[Status, int] = {"live": 0, "cached": 1, "fallback": 2, "stale": 3, "error": 4}


def _merge(one: SourceNote, other: SourceNote) -> SourceNote:
    """Merge two reads of one source for one section: the older time and the more severe status of those used."""
    if one.used != other.used:
        used, failed = (one, other) if one.used else (other, one)
        return replace(used, reason=used.reason or failed.reason)
    severe, mild = (one, other) if _SEVERITY[one.status] >= _SEVERITY[other.status] else (other, one)
    ages = [n.fetched_at for n in (one, other) if n.fetched_at]
    dropped = max(one.coverage.dropped, other.coverage.dropped)
    missing = tuple(sorted({*one.coverage.missing, *other.coverage.missing}))
    coverage = replace(severe.coverage, dropped=dropped, missing=missing)
    return replace(severe, fetched_at=min(ages, default=None), reason=severe.reason or mild.reason, coverage=coverage)
