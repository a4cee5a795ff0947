"""What is known of sources outside our code: who last saw one alive, what it announced, what it no longer gives.

The facts are joined with what sources declare (limits, lifetimes, licence) and with the readings of terms by the
source's name, so none of that is repeated here. One file comes with the package; the data directory has one with what
`doctor` saw on this machine, in the same format.
"""

from collections.abc import Mapping
from datetime import date
from email.utils import parsedate_to_datetime
from typing import Literal

import msgspec

from toolserver.upstream.http_sender import AnnouncementKind

SeenBy = Literal["recorded body", "public report", "live call"]
FORMAT: Literal[1] = 1


class Sighting(msgspec.Struct, frozen=True):
    """A proof that a source was alive. `on` is the day, or the first of a month if no more is known.

    A recorded body proves it for the day of its newest item, a public report for the day that it tells of, and a live
    call was made by this machine.
    """

    on: date
    by: SeenBy


class Announced(msgspec.Struct, frozen=True):
    """What an upstream says about the future of a source, in its own words, last seen on a day."""

    kind: AnnouncementKind
    text: str
    on: date

    @property
    def ends_on(self) -> date | None:
        """The day of a sunset; None for other announcements, and if the words are no date."""
        return read_day(self.text) if self.kind == "sunset" else None


class GoneMember(msgspec.Struct, frozen=True):
    """A member that a source no longer gives: its name, and the last day on which it is known to have been given."""

    member: str
    given_on: date


class SourceFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one source. `alone` says why no other source can stand in; `note` has whatever else matters."""

    seen: Sighting | None = None
    announced: tuple[Announced, ...] = ()
    gone: tuple[GoneMember, ...] = ()
    alone: str = ""
    note: str = ""

    def merge(self, newer: "SourceFacts") -> "SourceFacts":
        """Return both, with the later sighting, and the later of what is said of the same kind or member."""
        sightings = [each for each in (self.seen, newer.seen) if each is not None]
        announced = {each.kind: each for each in sorted((*self.announced, *newer.announced), key=lambda each: each.on)}
        gone = {each.member: each for each in sorted((*self.gone, *newer.gone), key=lambda each: each.given_on)}
        return SourceFacts(
            seen=max(sightings, key=lambda seen: seen.on, default=None),
            announced=tuple(announced[kind] for kind in sorted(announced)),
            gone=tuple(gone[member] for member in sorted(gone)),
            alone=newer.alone or self.alone,
            note=newer.note or self.note,
        )


FactsByName = Mapping[str, SourceFacts]


class _FactsFile(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal[1]
    sources: dict[str, SourceFacts]


def read_facts(content: bytes) -> dict[str, SourceFacts]:
    """Read a file of facts, by the names of sources. Raises msgspec.DecodeError, a ValueError, if it is not one."""
    return msgspec.json.decode(content, type=_FactsFile).sources


def write_facts(facts: FactsByName) -> bytes:
    """Return the file of these facts."""
    named = {name: facts[name] for name in sorted(facts)}
    return msgspec.json.format(msgspec.json.encode(_FactsFile(FORMAT, named)), indent=1) + b"\n"


def merge_facts(older: FactsByName, newer: FactsByName) -> dict[str, SourceFacts]:
    """Return the facts of both about each source."""
    names = older.keys() | newer.keys()
    return {name: older.get(name, SourceFacts()).merge(newer.get(name, SourceFacts())) for name in sorted(names)}


def read_day(text: str) -> date | None:
    """Return the day that a `Sunset` header names: an HTTP date, or ISO 8601. None if it is neither."""
    try:
        return parsedate_to_datetime(text).date()
    except ValueError:
        pass
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None
