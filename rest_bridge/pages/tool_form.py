"""Makes the form of a tool from its input schema: one field for each argument."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from toolserver.registry.json_schema import Schema
from toolserver.registry.registry import Operation

UNKNOWN = "…"  # placeholder for a value for which the schema has no example
CITIES = (
    "Auckland", "Bangkok", "Berlin", "Buenos Aires", "Cairo", "Cape Town", "Chicago", "Delhi", "Dubai", "Hong Kong",
    "Istanbul", "Jakarta", "Johannesburg", "Lagos", "London", "Los Angeles", "Madrid", "Mexico City", "Moscow",
    "Mumbai", "Nairobi", "New York", "Paris", "Reykjavik", "Rome", "San Francisco", "Seoul", "Shanghai", "Singapore",
    "Stockholm", "Sydney", "São Paulo", "Tokyo", "Toronto", "Vancouver", "Zurich",
)  # fmt: skip
COINS = ("ADA", "AVAX", "BNB", "BTC", "DOGE", "DOT", "ETH", "LINK", "LTC", "SOL", "TRX", "XRP")
SHARES = ("AAPL", "AMZN", "GOOGL", "META", "MSFT", "NVDA", "SPY", "TSLA")
SUGGESTIONS = {"place": CITIES, "coin": COINS, "coins": COINS, "symbols": SHARES}
"""Values to complete an argument with, by its name. Others are accepted too: the tool alone decides."""
FieldKind = Literal["choice", "flag", "number", "text", "json"]


@dataclass(frozen=True, slots=True)
class InputControl:
    """What a visitor enters a value with, and what it accepts: one of the `choices`, or a number within bounds."""

    kind: FieldKind
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    step: str = "any"


@dataclass(frozen=True, slots=True)
class FormField:
    """One argument. `initial` is the field's initial value, `hint` an example value."""

    name: str
    description: str
    required: bool
    initial: str
    hint: str
    control: InputControl
    suggestions: tuple[str, ...] = ()


def form_fields(operation: Operation) -> list[FormField]:
    """Return the fields in the order of the signature."""
    schema = operation.input_schema
    required = schema.get("required", ())
    return [_make_field(name, described, name in required) for name, described in schema["properties"].items()]


def _make_field(name: str, schema: Schema, required: bool) -> FormField:
    default = schema.get("default")
    example = _find_example(schema) if required or "examples" in schema else default
    return FormField(
        name=name,
        description=schema.get("description", ""),
        required=required,
        initial=_write_value(example) if required and example != UNKNOWN else "",
        hint=_write_value(default if default is not None else example),
        control=_make_control(schema),
        suggestions=_suggest(name, schema),
    )


def _suggest(name: str, schema: Schema) -> tuple[str, ...]:
    """Return values to complete an argument with: examples of its schema, then those of its kind."""
    if schema.get("type") != "string" or "enum" in schema:
        return ()
    return tuple(dict.fromkeys([*map(str, schema.get("examples", ())), *SUGGESTIONS.get(name, ())]))


def _make_control(schema: Schema) -> InputControl:
    kind = _choose_kind(schema)
    return InputControl(
        kind,
        choices=tuple("true false".split() if kind == "flag" else map(str, schema.get("enum", ()))),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        step="1" if schema.get("type") == "integer" else "any",
    )


def _choose_kind(schema: Schema) -> FieldKind:
    if "enum" in schema:
        return "choice"
    kinds: dict[str, FieldKind] = {"boolean": "flag", "integer": "number", "number": "number", "string": "text"}
    return kinds.get(schema.get("type", ""), "json")


def _find_example(schema: Schema) -> Any:
    """Return the first example, choice or bound, or a placeholder if there is none."""
    for value in (*schema.get("examples", ()), *schema.get("enum", ())):
        return value
    if schema.get("type") in ("integer", "number"):
        return schema.get("default", schema.get("minimum", 1))
    return {"array": [], "object": {}}.get(schema.get("type", ""), UNKNOWN)


def _write_value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
