"""Write an answer or a refusal as plain lines for a person at a terminal.

An answer may quote what strangers wrote, so characters that a terminal would obey are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolserver.core.visible_text import disarm

ENVELOPE = ("source", "endpoint")  # the service's and the tool's own names, which the reader has just typed
FACTS = ("simulated", "attribution", "credits_charged", "credits_remaining", "receipt_id")
STEP = "  "


def write_answer(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an answer: the data first, then warnings and age, then of `_meta` what a person needs."""
    shown = {name: value for name, value in payload.items() if name not in (*ENVELOPE, "data", "_meta")}
    if "data" in payload:
        yield from write_lines(payload["data"])
        yield ""
    yield from write_lines(shown)
    meta = payload.get("_meta") or {}
    yield from write_lines({name: meta[name] for name in FACTS if meta.get(name) is not None})
    if names := list(dict.fromkeys(source["name"] for source in meta.get("sources", ()))):
        yield from write_lines({"sources": names})


def write_lines(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of any JSON value. A member is `name: value`, an object in a list begins with a dash."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _write_member(_plain(str(name)), member, indent)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _write_item(item, indent)
    else:
        yield indent + _write_scalar(value)


def _write_member(name: str, value: Any, indent: str) -> Iterator[str]:
    if _is_scalar(value):
        first, *more = _write_scalar(value).split("\n")
        yield f"{indent}{name}: {first}"
        yield from (f"{indent}{STEP}{line}" for line in more)
    elif not value:
        yield f"{indent}{name}: none"
    elif isinstance(value, Sequence) and all(_is_scalar(item) for item in value):
        yield f"{indent}{name}: {', '.join(_write_scalar(item) for item in value)}"
    else:
        yield f"{indent}{name}:"
        yield from write_lines(value, indent + STEP)


def _write_item(item: Any, indent: str) -> Iterator[str]:
    lines = list(write_lines(item, indent + STEP))
    if lines:
        yield f"{indent}- {lines[0].removeprefix(indent + STEP)}"
        yield from lines[1:]


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _write_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    return "\n".join(_plain(line) for line in value.splitlines()) if isinstance(value, str) else str(value)


def _plain(text: str) -> str:
    """Return a text without characters that are not printed, such as the escape sequences of terminals."""
    return "".join(letter for letter in disarm(text) if letter.isprintable())
