"""What an answer says, where, of which time, and whether it marks it as uncertain."""

from datetime import datetime
from typing import Any

from tests.truth.known import disasters_since, quakes_since
from tests.truth.stage import Case, Composed, world_of
from tools.simulated.disasters import SimDisaster
from tools.simulated.usgs import SimQuake
from toolserver.world.model import World

UNCERTAIN = {
    "section_unavailable",
    "stale_data",
    "partial",
    "unproved_empty",
    "degraded_fallback",
    "field_missing",
    "missing_symbols",
    "disagreement",
    "implausible_jump",
    "insufficient_sample",
    "incomplete_window",
    "licence_excluded",
    "rows_dropped",
}
"""Warnings that a section may not be the whole truth. `fallback_used` and `truncated` say no such thing."""


def epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Said:
    """One answer, with the world that it is about."""

    def __init__(self, case: Case, composed: Composed) -> None:
        self.case, self.composed, self.answer = case, composed, composed.answer

    @property
    def free(self) -> bool:
        return "generated_at" not in self.answer or "data" in self.answer

    def get(self, path: str) -> Any:
        """The value at a dotted path, None where there is none."""
        value: Any = self.answer
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def flagged(self, section: str, *also: str) -> bool:
        """Whether the answer is stale, or a warning stands at the section or at what it is a part of."""
        if self.answer.get("stale"):
            return True
        codes = UNCERTAIN | set(also)
        told = [w["section"] for w in self.answer.get("warning", ()) if w["code"] in codes]
        told += [s["section"] for s in self.answer["_meta"]["sources"] if s["status"] == "stale"]
        return any(section == one or section.startswith(f"{one}.") for one in told)

    def touched(self, section: str) -> bool:
        """Whether anything at all is remarked about the section, or about a part of it."""
        told = [w["section"] for w in self.answer.get("warning", ())]
        told += [s["section"] for s in self.answer["_meta"]["sources"] if s["status"] not in ("live", "cached")]
        near = (section.startswith(f"{one}.") or one.startswith(f"{section}.") or one == section for one in told)
        return bool(self.answer.get("stale")) or any(near)

    def fetched_at(self, section: str) -> float:
        """When the oldest value of a section was fetched: the time that its facts are claimed to be of."""
        own = self.answer.get("updated_at") or self.answer.get("captured_at")
        used = [s for s in self.answer["_meta"]["sources"] if s["status"] != "error" and s.get("fetched_at", own)]
        here = [s for s in used if s["section"] == section or s["section"].startswith(section)]
        times = [epoch(s.get("fetched_at", own)) for s in here]
        return min(times, default=self.composed.at)

    def world(self, at: float | None = None) -> World:
        return world_of(self.case.scenario, self.composed.at if at is None else at)

    def quakes(self, since: float) -> tuple[SimQuake, ...]:
        """Every earthquake of the world after an instant, up to the answer."""
        return quakes_since(self.case.scenario, self.composed.at, since)

    def disasters(self, since: float) -> tuple[SimDisaster, ...]:
        """Every disaster of the world that went on after an instant, as they are at the time of the answer."""
        return disasters_since(self.case.scenario, self.composed.at, since)
