"""Builds the cache key of an answer, and checks whether its arguments are the defaults."""

from collections.abc import Hashable
from typing import Any

from pydantic import BaseModel

from toolserver.registry.registry import Operation


def is_default(operation: Operation, arguments: BaseModel) -> bool:
    """Return True if every argument has its default value."""
    fields = operation.arguments.model_fields
    return all(getattr(arguments, name) == field.default for name, field in fields.items())


def build_cache_key(operation: Operation, arguments: BaseModel) -> Hashable:
    """Return the cache key of an answer: the operation and every argument, with defaults filled in."""
    if not operation.arguments.model_fields or not operation.reads_only:
        return operation.name  # answers of operations that change data are never cached
    return (operation.name, *(_hashable(getattr(arguments, name)) for name in operation.arguments.model_fields))


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value
