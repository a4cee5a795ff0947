"""Define conditions of subscriptions: what has to happen to a value before a delivery is worth its price.

A condition is edge-triggered: it fires once when it becomes true and clears once when it ends. Firing and clearing have
separate thresholds, so that a value that swings around one of them is reported once. A condition is never judged on
missing or stale data, which is a separate state.
"""

from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

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
        asked = [self.above is not None, self.below is not None, self.changed, self.any_new]
        if sum(asked) != 1:
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


def condition_of(given: ConditionInput) -> WebhookCondition:
    """Return the condition to store for an input."""
    return msgspec.convert(given.model_dump(), WebhookCondition)


encode_condition = msgspec.json.Encoder().encode
decode_condition = msgspec.json.Decoder(WebhookCondition).decode


class Transition(msgspec.Struct, frozen=True):
    """What a delivery says of a condition: its name, its new state, and the value before and now."""

    name: str
    state: Told
    old: Any
    new: Any
