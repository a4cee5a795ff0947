"""What happened while a payload was composed: `_meta.sources[]` and `warning[]`, kept as they arise."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from toolserver.payloads import iso, iso_or_none
from toolserver.upstream.answer import describe
from toolserver.upstream.source import Source

Status = Literal["live", "cached", "fallback", "stale", "error"]
Code = Literal[
    "section_unavailable",
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
    "own_network_suspect",
    "licence_excluded",
    "insufficient_sample",
    "incomplete_window",
]


@dataclass(frozen=True, slots=True)
class SourceNote:
    """One source asked, or read from the cache, for one section."""

    source: Source[Any, Any]
    section: str
    status: Status
    fetched_at: datetime | None = None
    newest_at: datetime | None = None
    latency_ms: int | None = None
    reason: str | None = None
    replaces: str | None = None

    @property
    def used(self) -> bool:
        """Whether a value of this source is in the payload."""
        return self.status != "error"

    def as_json(self) -> dict[str, Any]:
        """The entry of `_meta.sources[]`."""
        entry: dict[str, Any] = {
            "name": self.source.name,
            "section": self.section,
            "status": self.status,
            "fetched_at": iso_or_none(self.fetched_at),
            "newest_at": iso_or_none(self.newest_at),
            "latency_ms": self.latency_ms,
            "licence": describe(self.source),
        }
        if self.reason:
            entry["reason"] = self.reason
        if self.replaces:
            entry["replaces"] = self.replaces
        return entry


@dataclass(frozen=True, slots=True)
class Caveat:
    """What is missing or older than it should be, in one sentence."""

    section: str
    code: Code
    message: str
    source: str | None = None

    def as_json(self) -> dict[str, Any]:
        named = {"source": self.source} if self.source else {}
        return {"section": self.section, **named, "code": self.code, "message": self.message[:200]}


@dataclass(slots=True)
class Notes:
    """The account of one composition."""

    sources: list[SourceNote] = field(default_factory=list)
    stale_as_a_whole: bool | None = None
    warnings: list[Caveat] = field(default_factory=list)

    def add(self, notes: Iterable[SourceNote]) -> None:
        """Keep notes; a source read twice for a section is listed once, by its weightiest status."""
        for note in notes:
            twin = next(
                (i for i, n in enumerate(self.sources) if n.source is note.source and n.section == note.section), None
            )
            if twin is None:
                self.sources.append(note)
            else:
                self.sources[twin] = _merged(self.sources[twin], note)

    def warn(self, section: str, code: Code, message: str, source: str | None = None) -> None:
        warning = Caveat(section, code, message, source)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def caveats(self) -> list[Caveat]:
        """The warnings by section, and in one order whoever answered first."""
        return sorted(self.warnings, key=lambda caveat: (caveat.section, caveat.code, caveat.source or ""))

    @property
    def used(self) -> list[SourceNote]:
        return [note for note in self.sources if note.used]

    @property
    def oldest_fetched_at(self) -> datetime | None:
        return min((n.fetched_at for n in self.used if n.fetched_at), default=None)

    @property
    def newest_item_at(self) -> datetime | None:
        return max((n.newest_at for n in self.used if n.newest_at), default=None)

    @property
    def attribution(self) -> list[str]:
        return sorted({n.source.licence.attribution for n in self.used})

    def stale(self, share: float = 0.0) -> bool:
        """Whether more than this share of the used values is stale."""
        if self.stale_as_a_whole is not None:
            return self.stale_as_a_whole
        used = self.used
        return sum(n.status == "stale" for n in used) > share * len(used)

    def meta(self, *, generated_at: datetime, stale: bool) -> dict[str, Any]:
        """The `_meta` object of an answer. It describes this composition and never the moment of a call.

        Sources stand by section and name, whatever order reads that ran side by side came home in.
        """
        return {
            "sources": [note.as_json() for note in sorted(self.sources, key=_place)],
            "attribution": self.attribution,
            "untrusted_text": any(n.source.untrusted for n in self.used),
            "generated_at": iso(generated_at),
            "stale": stale,
            "oldest_fetched_at": iso_or_none(self.oldest_fetched_at),
            "newest_item_at": iso_or_none(self.newest_item_at),
        }


def _place(note: SourceNote) -> tuple[str, bool, str]:
    return note.section, not note.used, note.source.name


_WEIGHT: dict[Status, int] = {"live": 0, "cached": 1, "fallback": 2, "stale": 3, "error": 4}


def _merged(one: SourceNote, other: SourceNote) -> SourceNote:
    """Two reads of one source for one section (other queries): the older and weightier of those that were used."""
    if one.used != other.used:
        used, failed = (one, other) if one.used else (other, one)
        return replace(used, reason=used.reason or failed.reason)
    heavy, light = (one, other) if _WEIGHT[one.status] >= _WEIGHT[other.status] else (other, one)
    ages = [n.fetched_at for n in (one, other) if n.fetched_at]
    newest = [n.newest_at for n in (one, other) if n.newest_at]
    latencies = [n.latency_ms for n in (one, other) if n.latency_ms is not None]
    return replace(
        heavy,
        fetched_at=min(ages, default=None),
        newest_at=max(newest, default=None),
        latency_ms=max(latencies, default=None),
        reason=heavy.reason or light.reason,
    )
