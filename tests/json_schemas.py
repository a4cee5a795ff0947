"""Validate values against JSON Schemas, each prepared once. Whether a schema is valid is tested where it is made.

The validator is one of compiled code: in Python, thousands of answers took a hundred times as long.
"""

from typing import Any

import jsonschema_rs

_VALIDATORS: dict[int, tuple[Any, jsonschema_rs.Draft202012Validator]] = {}  # by identity; the schema is kept alive


def validate(value: Any, schema: Any) -> None:
    """Raise ValidationError if the value does not match the schema, which is one of JSON Schema 2020-12."""
    found = _VALIDATORS.get(id(schema))
    if found is None:
        found = _VALIDATORS[id(schema)] = schema, prepare(schema)
    found[1].validate(value)


def prepare(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema. Raises ValidationError where the schema itself is not valid."""
    return jsonschema_rs.Draft202012Validator(schema)


def check_schema(schema: Any) -> None:
    """Raise ValidationError if this is no schema of JSON Schema 2020-12."""
    jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema)
