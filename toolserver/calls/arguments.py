"""Validates the arguments of a call against the signature of its tool."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from toolserver.calls.argument_errors import describe_invalid
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation


def validate_arguments(operation: Operation, given: Mapping[str, Any]) -> BaseModel:
    """Return the validated arguments, with defaults filled in and types converted.

    Raises:
        InvalidArguments: an argument is wrong or unknown; it has the valid names, the nearest ones and a valid call.
    """
    if holding := [name for name, value in given.items() if isinstance(value, str) and "\0" in value]:
        errors = [{"loc": name[:80], "msg": "contains a NUL character", "type": "value_error"} for name in holding]
        raise InvalidArguments("An argument contains a NUL character.", errors=errors)
    if not given and not operation.arguments.model_fields:
        return operation.arguments.model_construct()
    try:
        return operation.arguments.model_validate(dict(given))
    except ValidationError as error:
        raise describe_invalid(operation, error) from None
