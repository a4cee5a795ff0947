"""What payload models are made of: a base model, timestamps, and the marker of payloads that have no `data`."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)


def iso(time: datetime) -> str:
    """ISO 8601, UTC, whole seconds, `Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_or_none(time: datetime | None) -> str | None:
    return None if time is None else iso(time)


Timestamp = Annotated[
    AwareDatetime,
    PlainSerializer(iso, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A UTC time, written `2026-07-01T12:00:00Z`."""


class Payload(BaseModel):
    """Base of every model that goes out. NaN and infinity never validate; new fields may come any time."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True)


class TopLevel(Payload):
    """A payload whose fields stand beside `source` and `_meta` instead of inside `data`."""


class Sparse(Payload):
    """A payload whose fields are absent unless they were given: null means "asked for, and it failed"."""

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        # no return annotation: with one, pydantic would take it for the schema
        whole: dict[str, Any] = handler(self)
        return {name: value for name, value in whole.items() if name in self.model_fields_set}
