"""Checks the arguments of a call against the signature of its tool, and builds the cache key of its answer.

Wrong arguments are described in terms that a model can act on: the valid names and a valid call.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from toolserver.calls.response import Receive, RenderedResponse
from toolserver.core.caller import Caller
from toolserver.core.similar_names import find_similar
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation


@dataclass(slots=True)
class Call:
    """One call of a tool, as a face makes it: what is called, by whom, and over which connection.

    `key` is the cache key of its answer. `sent` are the arguments as the caller wrote them.
    `has_bytes` says whether the client already has an answer's bytes; it is None if the
    client named none. `receive` is the caller's connection, if there is one, and it is
    watched while a paid answer is made.
    """

    operation: Operation
    arguments: BaseModel
    key: Hashable
    caller: Caller
    sent: Mapping[str, Any] = field(default_factory=dict)
    has_bytes: Callable[[RenderedResponse], bool] | None = None
    receive: Receive | None = None

    @property
    def is_keyed_action(self) -> bool:
        """True for an action that its caller may repeat under a key."""
        caller = self.caller
        return self.operation.method == "POST" and caller.idempotency_key is not None and caller.payment is None

    def is_unchanged(self, rendered: RenderedResponse) -> bool:
        """Return True if the client already has this answer, so that a 304 is enough."""
        return self.has_bytes is not None and not rendered.nothing and self.has_bytes(rendered)


def validate_arguments(operation: Operation, sent: Mapping[str, Any]) -> BaseModel:
    """Return the validated arguments, with defaults filled in and types converted.

    Raises:
        InvalidArguments: an argument is wrong or unknown; it has the valid names, the nearest ones and a valid call.
    """
    if not sent and not operation.arguments.model_fields:
        return operation.arguments.model_construct()
    if sent and (holding := [name for name, value in sent.items() if isinstance(value, str) and "\0" in value]):
        errors = [{"loc": name[:80], "msg": "contains a NUL character", "type": "value_error"} for name in holding]
        raise InvalidArguments("An argument contains a NUL character.", errors=errors)
    switches = [name for name, value in sent.items() if isinstance(value, bool)]
    if misplaced := [name for name in switches if not _takes_switch(operation, name)]:
        said = "takes neither true nor false"
        errors = [{"loc": name, "msg": said, "type": "value_error"} for name in misplaced]
        raise InvalidArguments("; ".join(f"{name}: {said}" for name in misplaced), errors=errors)
    try:
        return operation.arguments.model_validate(dict(sent))
    except ValidationError as error:
        raise describe_invalid(operation, error) from None


def _takes_switch(operation: Operation, name: str) -> bool:
    """Return True unless an argument has a schema without booleans: pydantic would read true as 1."""
    schema = operation.input_schema["properties"].get(name, {})
    options = schema.get("anyOf", [schema])
    return any(option.get("type", "boolean") == "boolean" for option in options)


# Names that callers use for an argument with a different name; the first one that the tool has is suggested.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "place": (
        "city",
        "town",
        "location",
        "loc",
        "address",
        "q",
        "query",
        "where",
        "region",
        "country",
        "zip",
        "postal_code",
        "cities",
        "city_name",
        "place_name",
        "name",
    ),
    "lat": ("latitude", "y", "coordinate", "coord", "latlon", "latlng", "point"),
    "lon": ("longitude", "lng", "long", "x"),
    "area": ("state", "region", "us_state", "zone", "location", "city", "place"),
    "event": ("event_type", "type", "kind", "alert", "name"),
    "symbols": ("symbol", "ticker", "stock", "q", "query", "company", "name", "code"),
    "coins": ("coin", "symbol", "ticker", "currency", "id"),
    "limit": ("count", "max", "n", "top", "size", "per_page", "page_size", "max_results", "num", "number"),
    "cursor": ("page", "offset", "next", "after", "start"),
    "magnitude": ("mag", "min_magnitude", "minmagnitude", "minimum_magnitude", "min_mag"),
    "period": ("range", "timeframe", "window", "days", "interval", "time", "timespan", "duration"),
    "history": ("days", "range", "period", "series", "timeframe"),
    "since": ("from", "start", "after", "start_time", "date", "timestamp", "hours"),
    "include": ("sections", "fields", "only", "section", "parts"),
    "ip": ("ip_address", "ipv4", "address", "host", "hostname", "target", "domain", "query"),
    "severity": ("level", "min_severity"),
    "view": ("format", "mode", "type", "kind"),
    "amount_usd": ("amount", "usd", "dollars", "value", "credits", "price"),
    "tx_hash": ("hash", "txid", "tx", "transaction", "transaction_hash", "tx_id"),
    "nonce": ("memo", "purchase_nonce", "id"),
    "receipt": ("jws", "token", "signature"),
}

# Optional arguments whose example is no call by itself: half of a coordinate, and a place in a list that changes.
NOT_ALONE = ("lat", "lon", "cursor")
EXAMPLE = "example_arguments"  # the tag of a tool with a valid call, as JSON, that its schema and form shall not show


def describe_invalid(operation: Operation, error: ValidationError) -> InvalidArguments:
    """Return pydantic's errors as InvalidArguments: the place, message and type of each, but never a value."""
    names = list(operation.arguments.model_fields)
    errors, near = [], []
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, each["loc"])) or "arguments"
        message = each["msg"]
        if each["type"] == "extra_forbidden" and len(each["loc"]) == 1:
            suggested = suggest_name(place, names)
            near += [suggested] if suggested else []
            message = _describe_unknown(names, suggested)
        elif each["type"] in ("string_pattern_mismatch", "string_too_short", "string_too_long"):
            message = _described(operation, str(each["loc"][0])) or message
        errors.append({"loc": place[:80], "msg": message, "type": each["type"]})
    said = "; ".join(f"{e['loc']}: {e['msg']}" for e in errors[:5])
    refusal = InvalidArguments(said, errors=errors, valid_arguments=names, example=example_call(operation))
    if near:
        refusal.extra["did_you_mean"] = near
    return refusal


def suggest_name(written: str, names: list[str]) -> str | None:
    """Return the argument that a caller probably meant, by a known synonym or by spelling, or None."""
    plain = written.lower().replace("-", "_")
    for name in names:
        if plain.rstrip("s") == name.rstrip("s") or {plain, plain.rstrip("s")} & {*SYNONYMS.get(name, ())}:
            return name
    return next(iter(find_similar(plain, names, most=1, least=0.7)), None)


def example_call(operation: Operation) -> dict[str, Any]:
    """Return the name and arguments of a valid call: the required ones, or else the first one with an example."""
    if EXAMPLE in operation.tags:
        return {"name": operation.name, "arguments": json.loads(operation.tags[EXAMPLE])}
    schema = operation.input_schema
    required = set(schema.get("required", ()))
    shown: dict[str, Any] = {}
    for name, described in schema["properties"].items():
        is_enough = not shown and not required and name not in NOT_ALONE
        if name in required or (is_enough and described.get("examples")):
            shown[name] = _example_value(described)
    return {"name": operation.name, "arguments": shown}


def _describe_unknown(names: list[str], suggested: str | None) -> str:
    if not names:
        return "unknown argument; this tool takes none"
    meant = f"did you mean {suggested!r}? " if suggested else ""
    return f"unknown argument; {meant}the valid ones are {', '.join(names)}"


def _described(operation: Operation, name: str) -> str | None:
    """Say what an argument must be, from its description rather than as a regular expression."""
    field = operation.input_schema["properties"].get(name, {})
    said = field.get("description")
    example = next(iter(field.get("examples", ())), None)
    if said is None:
        return None
    return f"must be: {said}" + (f" (for example {example!r})" if example is not None else "")


def _example_value(field: Mapping[str, Any]) -> Any:
    for key in ("examples", "enum"):
        if field.get(key):
            return field[key][0]
    kinds = {"string": "text", "integer": field.get("minimum", 1), "number": field.get("minimum", 1), "boolean": True}
    return kinds.get(field.get("type", ""), {})


def is_default(operation: Operation, arguments: BaseModel) -> bool:
    """Return True if every argument has its default value."""
    fields = operation.arguments.model_fields
    return all(getattr(arguments, name) == field.default for name, field in fields.items())


def build_cache_key(operation: Operation, arguments: BaseModel) -> Hashable:
    """Return the cache key of an answer: the operation and every argument, with defaults filled in."""
    values = arguments.__dict__  # in the order of the fields; every call builds a key, and getattr takes longer
    if not values or not operation.reads_only:
        return operation.name  # answers of operations that change data are never cached
    return (operation.name, *[tuple(value) if type(value) is list else value for value in values.values()])
