"""Validate values against JSON Schemas, each prepared once. Whether a schema is valid is tested where it is made."""

from typing import Any

import jsonschema

_VALIDATORS: dict[int, tuple[Any, jsonschema.Draft202012Validator]] = {}  # by identity; the schema is kept alive


def validate(value: Any, schema: Any) -> None:
    """Raise ValidationError if the value does not match the schema."""
    found = _VALIDATORS.get(id(schema))
    if found is None:
        found = _VALIDATORS[id(schema)] = schema, jsonschema.Draft202012Validator(schema)
    found[1].validate(value)
