"""Defines base classes and types of payload models, and a measured number with its time."""

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)


class DataPoint(NamedTuple):
    """One value of a time series. `at` has a time zone."""

    at: datetime
    value: float


def iso(time: datetime) -> str:
    """Write a time in UTC with whole seconds: `2026-07-01T12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(at: float) -> datetime:
    """Return the time at `at` seconds since the epoch, in UTC."""
    return datetime.fromtimestamp(at, UTC)


def iso_ms(at: float) -> str:
    """Write a time in epoch seconds as ISO 8601 in UTC, with milliseconds and `Z`."""
    return iso_of_ms(math.floor(at * 1000))


def iso_of_ms(at: int) -> str:
    """Write a time in epoch milliseconds in the same way."""
    second, ms = divmod(at, 1000)
    return f"{_iso_second(second)}.{ms:03d}Z"


@lru_cache(64)
def _iso_second(at: int) -> str:
    """Write a second without zone or fraction. Cached, because many receipts are issued in the same second."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()


def iso_or_none(time: datetime | None) -> str | None:
    return None if time is None else iso(time)


Timestamp = Annotated[
    AwareDatetime,
    PlainSerializer(iso, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A UTC time, written `2026-07-01T12:00:00Z`."""


class Payload(BaseModel):
    """Base of every model in an answer. NaN and infinity do not validate; fields may be added at any time."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True, defer_build=True)  # most answers are never asked for


class TopLevel(Payload):
    """A payload whose fields stand next to `source` and `_meta`, not inside `data`."""


class Sparse(Payload):
    """A payload whose fields are absent unless they were set. A null field was requested and failed."""

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        # no return annotation, because pydantic would use it as the schema
        whole: dict[str, Any] = handler(self)
        return {name: value for name, value in whole.items() if name in self.model_fields_set}
