"""Lists deprecations: paths, tools, arguments, fields and names of sources, announced at least 90 days ahead.

This table is the only place. Response headers, the API description, /changelog and the test
that keeps published names are made from it. A name is removed from the service at its sunset,
and its line here then or later.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from typing import Literal

from toolserver.registry.json_schema import Schema
from toolserver.registry.registry import Operation

NOTICE = timedelta(days=90)

Kind = Literal["path", "tool", "argument", "field", "source"]


@dataclass(frozen=True)
class Deprecation:
    """A published name that will be removed. Arguments and fields begin with a tool: `weather.data.current.time`."""

    kind: Kind
    name: str
    since: date
    sunset: date
    replacement: str  # what to use instead, or "none"

    def __post_init__(self) -> None:
        if self.sunset - self.since < NOTICE:
            raise ValueError(f"{self.name}: {NOTICE.days} days must lie between the announcement and the sunset")

    def concerns(self, operation: Operation) -> bool:
        """Return True if answers of this tool have to announce it."""
        if self.kind == "path":
            return self.name == operation.path
        if self.kind == "source":
            return any(source.name == self.name for source in operation.sources)
        return self.name.partition(".")[0] in (operation.name, *operation.aliases)

    def as_json(self) -> dict[str, str]:
        """Return what definitions of tools say of it."""
        return {"kind": self.kind, "name": self.name, "sunset": str(self.sunset), "replacement": self.replacement}

    @property
    def line(self) -> str:
        """The member of X-Service-Deprecation."""
        return f"{self.kind}={self.name}; sunset={self.sunset}; replacement={self.replacement}"


DEPRECATIONS: tuple[Deprecation, ...] = (
    Deprecation("field", "llm-tools.openai_responses", date(2026, 11, 27), date(2027, 2, 25), "openai-responses"),
)


def find_deprecations(operation: Operation, deprecations: Sequence[Deprecation] = DEPRECATIONS) -> list[Deprecation]:
    """Return the deprecations of a tool, the next sunset first."""
    return [each for each in _in_order(deprecations) if each.concerns(operation)]


def deprecate_members(
    schema: Schema, operation: Operation, kind: Kind, deprecations: Sequence[Deprecation] = DEPRECATIONS
) -> Schema:
    """Return the schema of a tool's arguments or answer in which the members of that kind that will go say so."""
    names = {each.name for each in find_deprecations(operation, deprecations) if each.kind == kind}
    paths = {name.partition(".")[2] for name in names}
    return _mark(schema, "", paths) if paths else schema


def _mark(schema: Schema, path: str, paths: AbstractSet[str]) -> Schema:
    """Return a schema with marked members. Lists and alternatives add nothing to a path."""
    marked = dict(schema)
    if "properties" in schema:
        inside = {name: (f"{path}.{name}" if path else name) for name in schema["properties"]}
        marked["properties"] = {
            name: _mark(member, inside[name], paths) | ({"deprecated": True} if inside[name] in paths else {})
            for name, member in schema["properties"].items()
        }
    if isinstance(schema.get("items"), dict):
        marked["items"] = _mark(schema["items"], path, paths)
    if "anyOf" in schema:
        marked["anyOf"] = [_mark(arm, path, paths) for arm in schema["anyOf"]]
    return marked


def write_headers(deprecations: list[Deprecation]) -> dict[str, str]:
    """Return Deprecation (RFC 9745), Sunset (RFC 8594) and X-Service-Deprecation, with the earliest dates found."""
    if not deprecations:
        return {}
    since = min(each.since for each in deprecations)
    return {
        "Deprecation": f"@{int(_midnight(since).timestamp())}",
        "Sunset": format_datetime(_midnight(deprecations[0].sunset), usegmt=True),
        "X-Service-Deprecation": ", ".join(each.line for each in deprecations),
    }


def write_table(deprecations: Sequence[Deprecation] = DEPRECATIONS) -> str:
    """Return the head of the changelog in Markdown, or an empty string if nothing is deprecated."""
    if not deprecations:
        return ""
    rows = [
        f"| {each.kind} | `{each.name}` | {each.since} | {each.sunset} | {each.replacement} |"
        for each in _in_order(deprecations)
    ]
    head = ["## Deprecated", "", "| what | name | announced | removed on | instead |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, "", ""])


def _in_order(deprecations: Sequence[Deprecation]) -> list[Deprecation]:
    return sorted(deprecations, key=lambda each: (each.sunset, each.name))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
