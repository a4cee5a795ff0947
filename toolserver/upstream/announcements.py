"""Records what upstreams announce: that an address is deprecated, ends on a day, or has moved permanently."""

import logging
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

from toolserver.clock import Clock

log = logging.getLogger(__name__)

Kind = Literal["deprecation", "sunset", "warning", "moved"]
LONGEST = 200  # characters kept of a header
DAY_S = 86_400.0
FOR_GOOD = (301, 308)


class Announcement(NamedTuple):
    """One announcement of a source's upstream. `seen_at` is when it was last seen, in Unix seconds."""

    source: str
    kind: Kind
    text: str
    seen_at: float


class Announcements:
    """Keeps the last announcement of each kind by source, and logs each once a day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, Kind], Announcement] = {}
        self._logged_at: dict[tuple[str, Kind], float] = {}

    def record(self, source: str, url: str, status: int, headers: Mapping[str, str]) -> None:
        """Read the headers `Deprecation`, `Sunset` and `Warning: 299`, and a permanent redirect elsewhere."""
        texts: dict[Kind, str] = {}
        for kind in ("deprecation", "sunset"):
            if kind in headers:
                texts[kind] = headers[kind]
        if headers.get("warning", "").lstrip().startswith("299"):
            texts["warning"] = headers["warning"]
        target = urljoin(url, headers.get("location", ""))
        if status in FOR_GOOD and urlsplit(target).hostname != urlsplit(url).hostname:
            texts["moved"] = f"to {urlsplit(target).hostname}"
        for kind, text in texts.items():
            self._keep(source, kind, "".join(letter for letter in text if letter.isprintable())[:LONGEST])

    def _keep(self, source: str, kind: Kind, text: str) -> None:
        now, key = self._clock.time(), (source, kind)
        previous = self._kept.get(key)
        self._kept[key] = Announcement(source, kind, text, now)
        is_news = previous is None or previous.text != text
        if is_news or now - self._logged_at[key] >= DAY_S:
            self._logged_at[key] = now
            log.warning("an upstream announces a change", extra={"source": source, "kind": kind, "said": text})

    def list_all(self) -> list[Announcement]:
        """Return the kept announcements, by source and kind."""
        return [self._kept[key] for key in sorted(self._kept)]
