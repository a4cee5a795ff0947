"""Run the state machine of a condition: from a state and a payload to the next state and what to report.

clear ── fire threshold crossed, for_s held ──▶ fired        told: fired
fired ── clear threshold crossed ─────────────▶ clear        told: cleared
any   ── value missing or answer stale ───────▶ no_data      reported once, free; the level underneath is kept
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from toolserver.webhooks.conditions import MISSING, Transition, WebhookCondition, find_value

QUIET_S = 3600  # missing data are reported again no sooner than this
REMEMBERED = 512  # how many items are remembered after they have left a list
SHOWN = 20  # maximum number of new items that a delivery names
_ID_NAMES = ("id",)
_REVISION_NAMES = ("revision", "updated", "updated_at")


class ConditionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a condition. `pending_since` and `no_data_at` are epoch seconds.

    `old` is the last reported value, or for `changed` the last seen value. `seen` has the known items of a list; None
    before the list was first seen.
    """

    level: Literal["clear", "fired"] = "clear"
    pending_since: float | None = None
    no_data: bool = False
    no_data_at: float | None = None
    old: Any = None
    started: bool = False
    seen: tuple[str, ...] = ()


Step = tuple[ConditionState, Transition | None]


def evaluate(condition: WebhookCondition, state: ConditionState, payload: Any, now: float) -> Step:
    """Judge a condition at a time in epoch seconds. `payload` is None if there are no current data.

    Returns the same state object if nothing changed.
    """
    value = MISSING if payload is None else find_value(payload, condition.path)
    if condition.any_new:
        return _judge_list(condition, state, value, now)
    if condition.changed:
        return _judge_change(condition, state, value, now)
    if type(value) is not float and type(value) is not int:
        return _lose_data(condition, state, now)
    return _judge_level(condition, state, value, now)


def _judge_level(condition: WebhookCondition, state: ConditionState, value: float, now: float) -> Step:
    if state.level == "fired":
        return _judge_clear(condition, state, value)
    if not _fires(condition, value):
        if state.pending_since is None and not state.no_data:
            return state, None
        return _change(state, pending_since=None, no_data=False), None
    since = now if state.pending_since is None else state.pending_since
    if now - since < condition.for_s:
        return _change(state, pending_since=since, no_data=False), None
    report = Transition(condition.label, "fired", state.old, value)
    return _change(state, level="fired", pending_since=None, no_data=False, old=value), report


def _judge_clear(condition: WebhookCondition, state: ConditionState, value: float) -> Step:
    if not _clears(condition, value):
        return (_change(state, no_data=False) if state.no_data else state), None
    report = Transition(condition.label, "cleared", state.old, value)
    return _change(state, level="clear", pending_since=None, no_data=False, old=value), report


def _fires(condition: WebhookCondition, value: float) -> bool:
    if condition.above is not None:
        return value > condition.above
    return condition.below is not None and value < condition.below


def _clears(condition: WebhookCondition, value: float) -> bool:
    if condition.above is not None:
        return value < condition.clear_below if condition.clear_below is not None else value <= condition.above
    if condition.clear_above is not None:
        return value > condition.clear_above
    return condition.below is not None and value >= condition.below


def _judge_change(condition: WebhookCondition, state: ConditionState, value: Any, now: float) -> Step:
    if value is MISSING:
        return _lose_data(condition, state, now)
    if state.started and value == state.old:
        return (_change(state, no_data=False) if state.no_data else state), None
    report = Transition(condition.label, "fired", state.old, value) if state.started else None
    return _change(state, started=True, no_data=False, old=value), report


def _judge_list(condition: WebhookCondition, state: ConditionState, value: Any, now: float) -> Step:
    if not isinstance(value, list):
        return _lose_data(condition, state, now)
    named = {_fingerprint(item): item for item in value}
    seen = set(state.seen)
    new = [item for mark, item in named.items() if mark not in seen]
    if not new and state.started:
        return (_change(state, no_data=False) if state.no_data else state), None
    after = _change(state, started=True, no_data=False, seen=_remember(state.seen, named))
    if not state.started:
        return after, None
    return after, Transition(condition.label, "fired", None, [_name_item(item) for item in new[:SHOWN]])


def _lose_data(condition: WebhookCondition, state: ConditionState, now: float) -> Step:
    """End a wait because data are missing, and report that once; for an unstable source, once an hour."""
    if state.no_data:
        return state, None
    quiet = state.no_data_at is not None and now - state.no_data_at < QUIET_S
    after = _change(state, no_data=True, pending_since=None, no_data_at=state.no_data_at if quiet else now)
    return after, None if quiet else Transition(condition.label, "no_data", state.old, None)


def _change(state: ConditionState, **changes: Any) -> ConditionState:
    return msgspec.structs.replace(state, **changes)


def _remember(seen: Iterable[str], listed: Iterable[str]) -> tuple[str, ...]:
    """Return the items known last, then those listed now: items that leave a list and come back are not new."""
    listed = list(listed)
    now = set(listed)
    earlier = [mark for mark in seen if mark not in now]
    return (*earlier[-REMEMBERED:], *listed)


def _fingerprint(item: Any) -> str:
    """Return a short text that identifies an item in one revision; hundreds of these are stored."""
    return hashlib.sha256(msgspec.json.encode(_name_item(item), order="sorted")).hexdigest()[:16]


def _name_item(item: Any) -> Any:
    """Return an item's kind, id and revision, from the item or its `data`. An item without an id identifies itself."""
    if not isinstance(item, dict):
        return item
    inner = item.get("data") if isinstance(item.get("data"), dict) else {}
    id = _first(item, inner, _ID_NAMES)
    if id is None:
        return item
    named = {"type": item.get("type"), "id": id, "revision": _first(item, inner, _REVISION_NAMES)}
    return {name: value for name, value in named.items() if value is not None}


def _first(item: Any, inner: Any, names: Iterable[str]) -> Any:
    for name in names:
        for place in (item, inner):
            if place.get(name) is not None:
                return place[name]
    return None
