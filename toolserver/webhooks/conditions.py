"""Define conditions of subscriptions: what has to happen to a value before a delivery is worth its price.

A condition is edge-triggered: it fires once when it becomes true and clears once when it ends. Firing and clearing have
separate thresholds, so that a value that swings around one of them is reported once. A condition is never judged on
missing or stale data, which is a separate state.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from toolserver.core.similar_names import find_similar

MISSING = object()

Told = Literal["fired", "cleared", "no_data"]


class ConditionInput(BaseModel):
    """A condition as its owner gives it, on one value or one list of an endpoint's payload. Exactly one of above,
    below, changed and any_new is given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    path: str = Field(
        min_length=1,
        max_length=200,
        pattern=r"^\w[\w-]*(\.\w[\w-]*)*$",
        description="Where the value stands in the payload: names and list positions joined by dots",
        examples=["context.markets.btc.price_usd"],
    )
    name: str | None = Field(None, max_length=64, description="Comes back in deliveries; the path by default")
    above: float | None = Field(None, description="Fires when the value rises above this")
    clear_below: float | None = Field(None, description="With above: clears when the value falls below this")
    below: float | None = Field(None, description="Fires when the value falls below this")
    clear_above: float | None = Field(None, description="With below: clears when the value rises above this")
    changed: bool = Field(False, description="Fires whenever the value is another one than before")
    any_new: bool = Field(False, description="For a list: fires when it holds an item that is new or was revised")
    for_s: int = Field(
        0, ge=0, le=86_400, description="With above or below: fires only once this has held for so many seconds"
    )

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


Schema = dict[str, Any]


def check_path(path: str, schema: Schema) -> str | None:
    """Describe what is wrong with a path, with the valid names; None if the path can lead to a value."""
    here, walked = [schema], ""
    for step in path.split("."):
        options = [option for one in here for option in _options(one, schema)]
        children = [child for option in options for child in _children(option, step)]
        if not children:
            return _complain(walked, step, options)
        here, walked = children, f"{walked}.{step}" if walked else step
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
