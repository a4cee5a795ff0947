"""What must hold of an answer when one source is at fault: nothing invented, nothing hidden, nothing late."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.json_schemas import prepare
from tests.tools.faulty.cells import T1, Bench, Fault, Made, Memory, Situation
from toolserver.core.models import iso
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import answer_schema
from toolserver.upstream.source import MIB

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*")
SAME_LIST = re.compile(
    r"(?<=^\.data)\.(gainers|losers|indices|quotes)\[\]"
)  # of stocks: the same items, chosen otherwise
AROUND = {"_meta", "warning", "updated_at", "generated_at", "stale"}  # members that tell of the composition
EMPTY = "[]"
CALM = (0, EMPTY)  # what must never come of a failure
Claim = tuple[str, Any]

NEVER_AN_ANSWER: dict[str, Fault] = {
    "status 500": Fault("status", {"code": 500}),
    "status 503": Fault("status", {"code": 503}),
    "status 429": Fault("status", {"code": 429, "retry_after": 90}),
    "status 403": Fault("status", {"code": 403}),
    "rate_limit": Fault("rate_limit", {"n": 0}),
    "dns": Fault("dns"),
    "reset": Fault("reset"),
    "reset in the body": Fault("reset", {"at": "body"}),
    "timeout": Fault("timeout"),
    "latency": Fault("latency", {"ms": 60_000}),
    "truncated": Fault("truncated"),
    "malformed": Fault("malformed"),
    "html200": Fault("html200"),
    "error200": Fault("error200"),
    "geo": Fault("geo", {"code": 451}),
}
"""What no source may take for an answer."""

NEVER_FALSE: dict[str, Fault] = {
    "auth": Fault("auth"),
    "latency of 3 s": Fault("latency", {"ms": 3000}),
    "slow_drip": Fault("slow_drip", {"bytes_per_s": 2000}),
    "empty": Fault("empty"),
    "zeros": Fault("zeros"),
    "zeros but times": Fault("zeros", {"keep_times": True}),
    "drift": Fault("drift"),
    "drift extra": Fault("drift", {"form": "extra"}),
    "drift strings": Fault("drift", {"form": "strings"}),
    "drift numbers": Fault("drift", {"form": "numbers"}),
    "drift columns": Fault("drift", {"form": "columns"}),
    "drift utf16": Fault("drift", {"form": "utf16"}),
    "drift bom": Fault("drift", {"form": "bom"}),
    "drift renamed": Fault("drift", {"form": "renamed"}),
    "conditional_stuck": Fault("conditional_stuck"),
}
"""What may be an answer or not, but never a false one."""


class Cell(NamedTuple):
    """A kind of fault that struck, and whether a good answer was kept from before."""

    at: Situation
    kind: str
    fault: Fault
    warm: bool

    def __str__(self) -> str:
        return f"{self.at} · {self.kind}, {'warm' if self.warm else 'cold'}"


def faults_of(at: Situation) -> Iterator[tuple[str, Fault]]:
    """Every kind, with the parameters that make it bite this source."""
    yield from NEVER_AN_ANSWER.items()
    yield from NEVER_FALSE.items()
    most = max(source.max_bytes for source in at.sources)
    yield "oversize", Fault("oversize", {"mib": most / MIB + 0.1})
    yield "old", Fault("old", {"seconds": oldest(at)})
    yield "frozen", Fault("frozen", since=at.t0)
    yield "jump", Fault("jump", {"factor": 3})


def oldest(at: Situation) -> float:
    """An age that no document of the source may have, or a day where any age may be."""
    limits = [source.newest_max_s for source in at.sources if source.newest_max_s is not None]
    return max(limits) * 1.5 + 3600 if limits else 86_400


def claims(answer: dict[str, Any]) -> set[Claim]:
    """Every number and text of the payload with its place; positions in lists do not count, times are left out."""
    found: set[Claim] = set()

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for name, member in value.items():
                walk(member, f"{path}.{name}")
        elif isinstance(value, list):
            for item in value:
                walk(item, f"{path}[]")
            if not value:
                found.add((path, EMPTY))
        elif path == ".summary" and value is not None:
            found.update((path, word) for word in value.split())
        elif value is not None and not (isinstance(value, str) and TIME.fullmatch(value)):
            found.add((path, value))

    walk({name: member for name, member in answer.items() if name not in AROUND}, "")
    return {(SAME_LIST.sub(".quotes[]", path), value) for path, value in found}


class Judge:
    """Knows what a tool may say in a situation. Complaints are sentences; there should be none."""

    def __init__(self, bench: Bench, at: Situation) -> None:
        self._bench, self._at = bench, at
        self.now: set[Claim] = set()
        self.before: set[Claim] = set()
        self.memory: Memory | None = None

    async def prepare(self) -> None:
        """Compose what the tool says with and without the source, now and before, and with a part of each."""
        bench, at = self._bench, self._at
        self.memory = await bench.memory(at)
        gone = await self._groups()
        for away in gone:
            self.now |= claims((await bench.plain(at, T1, away=away)).answer)
            self.before |= claims((await bench.plain(at, at.t0, away=away)).answer)
        self.before |= claims((await bench.with_memory(at)).answer)
        self.before |= claims((await bench.faulty(at, Fault("frozen", since=at.t0), None)).answer)

    async def _groups(self) -> set[frozenset[str]]:
        """Who may be missing together: nobody, the source, its section, the others of it, its hosts."""
        at, one = self._at, {self._at.name}
        used = (await self._bench.plain(at, T1)).used
        section = {name for name, served in used.items() if served == used[at.name]}
        groups = {source.hosts for source in at.sources}
        hosts = {source.name for source in at.operation.sources if source.hosts in groups}
        return {at.away | away for away in (frozenset(), one, section | one, section - one, hosts | one)}

    async def complaints(self, cell: Cell) -> list[str]:
        """Everything that is wrong with the answer under a fault."""
        try:
            made = await self._bench.faulty(self._at, cell.fault, self.memory if cell.warm else None)
        except InvalidArguments:
            return []  # the caller is told that its words are not understood: that claims nothing
        said = [*invalid(self._at.operation, made), *late(self._at.operation, made)]
        said += hidden(self._at, made, await self._bench.plain(self._at, T1))
        if made.unmatched:
            said.append(f"not simulated: {made.unmatched[0]}")
        failed = frozenset(entry["name"] for entry in made.entries if entry["status"] == "error")
        now = self.now | claims((await self._bench.plain(self._at, T1, away=self._at.away | failed)).answer)
        allowed = now | self.before if cell.warm or cell.kind == "frozen" else now
        told = claims(made.answer)
        new = told - allowed if can_tell(cell) else {claim for claim in told - allowed if claim[1] in CALM}
        if new:
            said.append(f"{len(new)} claims from nowhere: {', '.join(sorted(map(str, new))[:3])}")
        if cell.kind in NEVER_AN_ANSWER:
            said += [
                f"taken for an answer: {e['status']} in {e['section']}" for e in made.entries if taken(e, self._at.name)
            ]
            if told & (self.before - now) and not made.answer["updated_at"] < iso(datetime.fromtimestamp(T1, UTC)):
                said.append("shows what it knew before as if it were new")
        return said


def can_tell(cell: Cell) -> bool:
    """Whether one provider alone can be known to be wrong: a jump by what it said before, an age by its own dates."""
    if cell.kind == "jump":
        return cell.warm and any(source.gauge is not None for source in cell.at.sources)
    return cell.kind != "old" or any(source.newest_max_s is not None for source in cell.at.sources)


def invalid(operation: Operation, made: Made) -> list[str]:
    """What the schema of whole answers has against this one; an answer seen before is not looked at again."""
    text = made.rendered.payload
    if text in _VALID:
        return []
    if operation.name not in _VALIDATORS:
        _VALIDATORS[operation.name] = prepare(answer_schema(operation, full=True))
    found = next(_VALIDATORS[operation.name].iter_errors(made.answer), None)
    if found is None:
        _VALID.add(text)
    return [f"against its schema: {found.message[:100]} at {found.instance_path}"] if found else []


_VALIDATORS: dict[str, Any] = {}
_VALID: set[bytes] = set()


def late(operation: Operation, made: Made) -> list[str]:
    too_long = made.passed_s > operation.deadline_s + 0.1
    return [f"took {made.passed_s:.1f} s of {operation.deadline_s:g}"] if too_long else []


def hidden(at: Situation, made: Made, usual: Made) -> list[str]:
    """A source that serves a section otherwise and does not now must be named: in a warning, as failed or replaced."""
    warnings = made.answer.get("warning", [])
    if made.rendered.nothing:
        named = warnings and at.name in json.dumps([warnings, made.entries])
        return [] if named else ["nothing, and no warning, or not for want of whom"]
    missing = sections(usual, at.name) - sections(made, at.name)
    told = [*warnings, *(entry for entry in made.entries if entry["status"] != "live")]
    named = {one["section"] for one in told if at.name in json.dumps(one)}
    return [
        f"{at.name} is missing in {section} and nobody says so" for section in missing if not covered(section, named)
    ]


def sections(made: Made, name: str) -> set[str]:
    """Where the values of a source are in the answer."""
    return {entry["section"] for entry in made.entries if entry["name"] == name and entry["status"] != "error"}


def covered(section: str, named: set[str]) -> bool:
    """Whether it is spoken of, or what it is a part of."""
    return any(section == one or section.startswith(f"{one}.") for one in named)


def taken(entry: dict[str, Any], name: str) -> bool:
    """Whether a faulty exchange counts as one that gave something."""
    return bool(entry["name"] == name and entry["status"] in ("live", "fallback") and not entry.get("reason"))
