"""Define conditions of subscriptions: what has to happen to a value before a delivery is worth its price.

A condition is edge-triggered: it fires once when it becomes true and clears once when it
ends. Firing and clearing have separate thresholds, so that a value that swings around one of
them is reported once. A condition is never judged on missing or stale data, which is a
separate state:

clear ── fire threshold crossed, for_s held ──▶ fired        told: fired
fired ── clear threshold crossed ─────────────▶ clear        told: cleared
any   ── value missing or answer stale ───────▶ no_data      reported once, free; the level underneath is kept
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from toolserver.core.similar_names import find_similar
from toolserver.core.visible_text import require_visible

MISSING = object()
QUIET_S = 3600  # missing data are reported again no sooner than this
REMEMBERED = 512  # how many items are remembered after they have left a list
SHOWN = 20  # maximum number of new items that a delivery names
_ID_NAMES = ("id",)
_REVISION_NAMES = ("revision", "updated", "updated_at")

Told = Literal["fired", "cleared", "no_data"]


class ConditionInput(BaseModel):
    """A condition as its owner gives it, on one value or one list of an endpoint's payload. Exactly one of above,
    below, changed and any_new is given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    path: str = Field(
        min_length=1,
        max_length=200,
        pattern=r"^\w[\w-]*(\.\w[\w-]*)*$",
        description="Where the value stands in the payload: names and list positions joined by dots",
        examples=["context.markets.btc.price_usd"],
    )
    name: Annotated[str, AfterValidator(require_visible)] | None = Field(
        None, max_length=64, description="Comes back in deliveries; the path by default"
    )
    above: float | None = Field(None, description="Fires when the value rises above this")
    clear_below: float | None = Field(None, description="With above: clears when the value falls below this")
    below: float | None = Field(None, description="Fires when the value falls below this")
    clear_above: float | None = Field(None, description="With below: clears when the value rises above this")
    changed: bool = Field(False, description="Fires whenever the value is another one than before")
    any_new: bool = Field(False, description="For a list: fires when it holds an item that is new or was revised")
    for_s: int = Field(
        0, ge=0, le=86_400, description="With above or below: fires only once this has held for so many seconds"
    )

    @field_validator("above", "clear_below", "below", "clear_above", "for_s", mode="before")
    @classmethod
    def _is_number(cls, bound: Any) -> Any:
        if isinstance(bound, bool):
            raise ValueError("must be a number")
        return bound

    @model_validator(mode="after")
    def _is_one_question(self) -> "ConditionInput":
        triggers = [self.above is not None, self.below is not None, self.changed, self.any_new]
        if sum(triggers) != 1:
            raise ValueError("give exactly one of above, below, changed and any_new")
        if self.clear_below is not None and (self.above is None or self.clear_below > self.above):
            raise ValueError("clear_below goes with above, and is not larger")
        if self.clear_above is not None and (self.below is None or self.clear_above < self.below):
            raise ValueError("clear_above goes with below, and is not smaller")
        if self.for_s and (self.changed or self.any_new):
            raise ValueError("for_s goes with above or below")
        return self


class WebhookCondition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition as it is stored and judged; its fields are those of ConditionInput."""

    path: str
    name: str | None = None
    above: float | None = None
    clear_below: float | None = None
    below: float | None = None
    clear_above: float | None = None
    changed: bool = False
    any_new: bool = False
    for_s: int = 0

    @property
    def label(self) -> str:
        """The name of this condition in deliveries."""
        return self.name or self.path


def find_value(payload: Any, path: str) -> Any:
    """Return the value at a path in a payload; MISSING if the path leads nowhere or to null."""
    for step in path.split("."):
        if isinstance(payload, dict):
            payload = payload.get(step)
        elif isinstance(payload, list) and step.isdecimal() and int(step) < len(payload):
            payload = payload[int(step)]
        else:
            return MISSING
    return MISSING if payload is None else payload


def condition_of(wanted: ConditionInput) -> WebhookCondition:
    """Return the condition to store for an input."""
    return msgspec.convert(wanted.model_dump(), WebhookCondition)


encode_condition = msgspec.json.Encoder().encode
decode_condition = msgspec.json.Decoder(WebhookCondition).decode


class Transition(msgspec.Struct, frozen=True):
    """What a delivery says of a condition: its name, its new state, and the value before and now."""

    name: str
    state: Told
    old: Any
    new: Any


class ConditionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a condition. `pending_since` and `no_data_at` are epoch seconds.

    `old` is the last reported value, or for `changed` the last seen value. `seen` has the
    known items of a list; None before the list was first seen.
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
    if state.started and is_same_json(value, state.old):
        return (_change(state, no_data=False) if state.no_data else state), None
    report = Transition(condition.label, "fired", state.old, value) if state.started else None
    return _change(state, started=True, no_data=False, old=value), report


def is_same_json(one: Any, other: Any) -> bool:
    """Return True if two values are the same in JSON, where true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same_json(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same_json, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _judge_list(condition: WebhookCondition, state: ConditionState, value: Any, now: float) -> Step:
    if not isinstance(value, list):
        return _lose_data(condition, state, now)
    new = find_new_items(value, state)
    if not new and state.started:
        return (_change(state, no_data=False) if state.no_data else state), None
    after = _change(state, started=True, no_data=False, seen=_remember(state.seen, map(_fingerprint, value)))
    if not state.started:
        return after, None
    return after, Transition(condition.label, "fired", None, [_name_item(item) for item in new[:SHOWN]])


def find_new_items(items: Iterable[Any], before: ConditionState) -> list[Any]:
    """Return the items of a list that a state of a condition has not seen, each once."""
    seen = set(before.seen)
    return [item for mark, item in {_fingerprint(item): item for item in items}.items() if mark not in seen]


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
    listed = list(dict.fromkeys(listed))
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


Schema = dict[str, Any]


def check_path(condition: WebhookCondition, schema: Schema) -> str | None:
    """Describe what is wrong with the path of a condition, with the valid names.

    None if the path can lead to a value of the kind that the condition judges: a list, a number, or anything.
    """
    here, walked = [schema], ""
    for step in condition.path.split("."):
        options = [option for one in here for option in _options(one, schema)]
        children = [child for option in options for child in _children(option, step)]
        if not children:
            return _complain(walked, step, options)
        here, walked = children, f"{walked}.{step}" if walked else step
    kinds = {kind for one in here for option in _options(one, schema) for kind in _kinds(option)}
    if condition.any_new and kinds.isdisjoint({"array", None}):
        return f"{condition.path} is no list; any_new watches the items of a list."
    if not (condition.any_new or condition.changed) and kinds.isdisjoint({"number", "integer", None}):
        return f"{condition.path} is no number; above and below compare numbers."
    return None


def _options(schema: Schema, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """Yield the alternatives of a schema: follow references and split unions."""
    if depth > 20:
        return
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from _options(root.get("$defs", {}).get(name, {}), root, depth + 1)
        return
    unions = [option for word in ("anyOf", "oneOf", "allOf") for option in schema.get(word, [])]
    for option in unions:
        yield from _options(option, root, depth + 1)
    if not unions:
        yield schema


def _kinds(schema: Schema) -> Sequence[str | None]:
    """Return the types that a schema allows; None stands for any."""
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _children(schema: Schema, step: str) -> Iterator[Schema]:
    """Yield where a step leads: a named member, any member of a free-form object, or an item of a list."""
    if not schema:
        yield {}
    if step in schema.get("properties", {}):
        yield schema["properties"][step]
    elif schema.get("type") == "object" and schema.get("additionalProperties", True) is not False:
        more = schema.get("additionalProperties", True)
        if "properties" not in schema or isinstance(more, dict):
            yield more if isinstance(more, dict) else {}
    if schema.get("type") == "array" and step.isdecimal():
        yield schema.get("items", {})


def _complain(walked: str, step: str, options: list[Schema]) -> str:
    where = f"{walked} has" if walked else "The payload has"
    names = sorted({name for option in options for name in option.get("properties", {})})
    if not names:
        return f"{where} no member {step}."
    near = find_similar(step, names, most=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"{where} no member {step}; it has: {', '.join(names)}.{hint}"
