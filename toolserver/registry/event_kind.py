"""Describes what a tool's answers can tell a subscriber of MCP Events: kinds of events, declared beside the tool.

A kind reads items out of the answers that all callers get. Items have ids, numbers, times and words of fixed lists.
What third parties wrote stands only in a member `untrusted` of an item, and is cut: an event wakes an agent, and a
stranger's sentence must not look like one of ours.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MOST_TEXT = 200  # characters of one text of a third party
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,127}$"
_is_plain_id = re.compile(ID_PATTERN).match


def clean_id(id: Any) -> str:
    """Return a third party's id if it is short and plain, else the beginning of its SHA-256."""
    text = str(id)
    return text if _is_plain_id(text) else hashlib.sha256(text.encode()).hexdigest()[:32]


def cut_text(text: Any) -> Any:
    """Return at most `MOST_TEXT` characters of a text; anything else unchanged."""
    return f"{text[: MOST_TEXT - 1]}…" if isinstance(text, str) and len(text) > MOST_TEXT else text


EventId = Annotated[str, BeforeValidator(clean_id), Field(pattern=ID_PATTERN)]
"""The id of an item, which identifies it as long as a subscription lasts."""

UntrustedText = Annotated[str, BeforeValidator(cut_text), Field(max_length=MOST_TEXT)]
"""A text that a third party wrote, for the member `untrusted` of an item."""


class EventArguments(BaseModel):
    """The base of the arguments of a kind: flat, and nothing else is accepted."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


@dataclass(frozen=True, slots=True)
class EventLevel:
    """The number in a member of the only item, and the bounds that a subscriber set for it.

    `bounds` makes them from the subscriber's arguments: `above` or `below`, `clear_below` or `clear_above`, and
    `for_s`, as in a webhook's condition.
    """

    member: str
    bounds: Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event. `arguments` and `item` are models, `ask` makes the tool's arguments from the subscriber's.

    `read` finds the items in an answer of the tool as JSON, at a time; None if the answer does not say. Each item is
    an object with an `id`. Without `level`, every item with an id that was not listed before is an event. With it
    there is one item, and an event when its level passes the subscriber's bounds.
    """

    name: str
    description: str
    arguments: type[EventArguments]
    item: type[BaseModel]
    ask: Callable[[Any], Mapping[str, Any]]
    read: Callable[[Any, Any, datetime], Sequence[Mapping[str, Any]] | None]
    level: EventLevel | None = None
