"""What a tool function is given: a way to read sources, and an honest account of how that went.

    value = await ctx.read(QUAKES, query)                      raises
    value = await ctx.first("data", via(A, q), via(B, q))      raises when no leg answers
    value = await ctx.section("data", via(A, q), via(B, q))    None and a warning when no leg answers

A kept, stale value is used only after every leg has failed to give a fresh one.
"""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import anyio

from toolserver.access import Caller
from toolserver.errors import PaymentRequired, SourceError
from toolserver.history import History
from toolserver.legs import Leg, Race, Reading, attempted, via
from toolserver.notes import Code, Notes, SourceNote
from toolserver.payloads import iso
from toolserver.upstream.answer import Desk
from toolserver.upstream.source import Source

__all__ = ["Leg", "Reading", "ToolContext", "via"]

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")


class ToolContext:
    """Handed to a tool function as its first argument, made anew for each composition."""

    def __init__(
        self,
        desk: Desk,
        *,
        now: Callable[[], datetime],
        sla_s: float,
        hedge_after_s: float = 2.5,
        patience_s: float = math.inf,
        host: Any = None,
        history: History | None = None,
        caller: Caller | None = None,
    ) -> None:
        self._desk, self._now, self._sla_s, self._hedge_after_s = desk, now, sla_s, hedge_after_s
        self._give_up_at = math.inf if patience_s == math.inf else anyio.current_time() + patience_s
        self.now = now()  # one instant for the whole composition
        self.host = host
        self.caller = caller  # only payment and account tools are told who calls
        self.notes = Notes()
        self.history = history or History()
        self.empty = False
        self.shortened_s: float | None = None

    @property
    def token(self) -> str:
        """The caller's bearer token, found valid before the tool was run. Raises missing_token where none is needed."""
        if self.caller is None or self.caller.token is None:
            raise PaymentRequired("missing_token", "This acts for the owner of a token: send a bearer token.")
        return self.caller.token

    def warn(self, section: str, code: Code, message: str, source: str | None = None) -> None:
        """Leave a warning in the answer: what is missing, in one sentence without advice."""
        self.notes.warn(section, code, message, source)

    def mark_empty(self) -> None:
        """A premium payload with nothing worth paying for in it: it is given, and not charged."""
        self.empty = True

    def shorten(self, seconds: float) -> None:
        """The answer is worth less than its usual lifetime: compose it anew after so many seconds."""
        self.shortened_s = seconds if self.shortened_s is None else min(self.shortened_s, seconds)

    def judge_stale(self, stale: bool) -> None:
        """Say yourself whether the answer as a whole is stale, where counting sources would not tell."""
        self.notes.stale_as_a_whole = stale

    async def kept(self, source: Source[Q, R], query: Q = None, *, section: str = "data") -> R | None:  # type: ignore[assignment]
        """A source's last good answer, without asking it; noted as cached or stale, by its age. None without one."""
        reading = Reading(self._desk, section, self._now, self._sla_s, kept=True)
        try:
            value = await reading.read(source, query)
        except SourceError:
            return None
        self.notes.add(reading.notes)
        return value

    async def read(self, source: Source[Q, R], query: Q = None, *, section: str = "data") -> R:  # type: ignore[assignment]
        """One source's answer, a kept one if need be. Raises SourceError."""
        return await self.first(section, via(source, query))

    async def section(self, section: str, *legs: Leg[T]) -> T | None:
        """The first leg's value, or None and a warning."""
        try:
            return await self.first(section, *legs)
        except SourceError:
            return None

    async def first(self, section: str, *legs: Leg[T]) -> T:
        """The first leg that answers; fresh before stale. Raises the first leg's SourceError when none does."""
        readings = [Reading(self._desk, section, self._now, self._sla_s) for _ in legs]
        race: Race[T] = Race(legs, readings, self._hedge_after_s, self._give_up_at)
        if (won := await race.run()) is not None:
            self._account(section, race, won.index)
            return won.value
        for leg in legs:
            reading = Reading(self._desk, section, self._now, self._sla_s, kept=True)
            try:
                value = await attempted(leg, reading)
            except SourceError:
                continue
            self._account_kept(section, race, reading)
            return value
        self._account_nothing(section, race)
        raise race.first_error()

    def _account(self, section: str, race: "Race[Any]", winner: int) -> None:
        failed = race.failures()
        notes = race.readings[winner].notes
        if missed := race.missed_before(winner):
            source, reason = missed
            notes = [_as_fallback(note, source, reason) for note in notes]
            names = ", ".join(sorted({note.source.name for note in notes if note.used}))
            self.warn(section, "fallback_used", f"{source.name} gave nothing ({reason}); {names} is used.", source.name)
        self.notes.add([*notes, *failed])
        self._warn_stale(section, notes)

    def _account_kept(self, section: str, race: "Race[Any]", reading: Reading) -> None:
        reasons = {id(n.source): n.reason for n in race.failures()}
        notes = [
            n
            if not n.used
            else SourceNote(n.source, section, "stale", n.fetched_at, n.newest_at, None, reasons.get(id(n.source)))
            for n in reading.notes
        ]
        kept = {id(n.source) for n in notes}
        self.notes.add([*notes, *(n for n in race.failures() if id(n.source) not in kept)])
        self._warn_stale(section, notes)

    def _account_nothing(self, section: str, race: "Race[Any]") -> None:
        failures = race.failures()
        self.notes.add(failures)
        if failures and all(n.reason and n.reason.startswith("licence") for n in failures):
            self.warn(section, "licence_excluded", "The licence policy bars every source of this section.")
            return
        reasons = "; ".join(f"{n.source.name}: {n.reason}" for n in failures) or "no source is usable"
        self.warn(
            section,
            "section_unavailable",
            f"No source answered ({reasons}).",
            failures[0].source.name if failures else None,
        )

    def _warn_stale(self, section: str, notes: list[SourceNote]) -> None:
        for note in notes:
            if note.status == "stale" and note.fetched_at:
                reason = f" ({note.reason})" if note.reason else ""
                self.warn(
                    section,
                    "stale_data",
                    f"{note.source.name} could not be refreshed{reason}; the value is of {iso(note.fetched_at)}.",
                    note.source.name,
                )


def _as_fallback(note: SourceNote, replaced: Source[Any, Any], reason: str) -> SourceNote:
    if not note.used:
        return note
    status = note.status if note.status == "stale" else "fallback"
    return SourceNote(
        note.source,
        note.section,
        status,
        note.fetched_at,
        note.newest_at,
        note.latency_ms,
        f"{reason}: {replaced.name}"[:120],
        replaced.name,
    )
