"""Keeps what is known of sources: the facts that are shipped, what `doctor` saw on this machine, and what is seen now.

`doctor` writes the file in the data directory; a running service reads it again when it
changes. A simulated world says nothing about the real sources, so a service on it shows the
shipped facts alone.
"""

import logging
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from toolserver.core.models import moment
from toolserver.core.private_file import write_private_bytes
from toolserver.registry.source_facts import (
    Announced,
    FactsByName,
    GoneMember,
    Sighting,
    SourceFacts,
    merge_facts,
    read_facts,
    write_facts,
)
from toolserver.serving.packaged_texts import read_shipped_facts
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import Announcement
from toolserver.upstream.member_watch import MemberWatch

log = logging.getLogger(__name__)

SOURCE_FACTS = "source-facts.json"


class KnownSources:
    """The facts about sources on this machine. `folder` is the data directory; None on a simulated world."""

    def __init__(self, folder: Path | None, fetcher: Fetcher, members: MemberWatch) -> None:
        self._path, self._fetcher, self._members = folder and folder / SOURCE_FACTS, fetcher, members
        self._changed_at: int | None = None
        self._stored: FactsByName | None = None

    def read(self, names: Iterable[str]) -> dict[str, SourceFacts]:
        """Return what is known of these sources and of any that is in a file, by name."""
        return merge_facts(self._read_stored(), {} if self._path is None else self._collect_seen(names))

    def keep(self, alive: Iterable[str], announced: Iterable[Announcement], today: date) -> Path | None:
        """Store that these sources answered today, and what has been announced or is missing. Return the file's path.

        Returns None on a simulated world. Raises OSError if the file cannot be written.
        """
        if self._path is None:
            return None
        seen = {name: SourceFacts(seen=Sighting(today, "live call")) for name in alive}
        noticed = merge_facts(seen, self._collect_noticed(announced))
        write_private_bytes(self._path, write_facts(merge_facts(_read_own(self._path), noticed)))
        return self._path

    def _read_stored(self) -> FactsByName:
        """Return the shipped facts and those of the data directory, which is read again when its file has changed."""
        try:
            changed_at = None if self._path is None else self._path.stat().st_mtime_ns
        except OSError:
            changed_at = None
        if self._stored is None or changed_at != self._changed_at:
            self._changed_at = changed_at
            own = {} if self._path is None else _read_own(self._path)
            self._stored = merge_facts(read_shipped_facts(), own)
        return self._stored

    def _collect_seen(self, names: Iterable[str]) -> dict[str, SourceFacts]:
        """Return what this process has seen of these sources in the past day."""
        good = {name: self._fetcher.history.find_good(name) for name in names}
        seen = {
            name: SourceFacts(seen=Sighting(moment(at).date(), "live call"))
            for name, at in good.items()
            if at is not None
        }
        return merge_facts(seen, self._collect_noticed(self._fetcher.announcements.list_all()))

    def _collect_noticed(self, announced: Iterable[Announcement]) -> dict[str, SourceFacts]:
        """Return these announcements and the members that are missing now, by source."""
        noticed: dict[str, SourceFacts] = {}
        for each in announced:
            facts = SourceFacts(announced=(Announced(each.kind, each.text, moment(each.seen_at).date()),))
            noticed = merge_facts(noticed, {each.source: facts})
        for source, member, at in self._members.list_gone():
            facts = SourceFacts(gone=(GoneMember(member, moment(at).date()),))
            noticed = merge_facts(noticed, {source: facts})
        return noticed


def _read_own(path: Path) -> FactsByName:
    """Return the facts in the data directory's file; none if there is no readable one, which is logged."""
    try:
        return read_facts(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning("the facts about sources cannot be read", extra={"path": str(path), "error": str(error)})
        return {}
