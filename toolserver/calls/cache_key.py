"""Under which key an answer is cached, and whether its arguments are the default ones."""

from collections.abc import Hashable
from typing import Any

from pydantic import BaseModel

from toolserver.registry.registry import Operation


def is_default(operation: Operation, arguments: BaseModel) -> bool:
    """Whether a caller left every argument as it is by default."""
    fields = operation.arguments.model_fields
    return all(getattr(arguments, name) == field.default for name, field in fields.items())


def build_cache_key(operation: Operation, arguments: BaseModel) -> Hashable:
    """The cache key of an answer: the operation and every argument, with defaults filled in."""
    if not operation.arguments.model_fields or not operation.reads_only:
        return operation.name  # answers of operations that change something are never cached
    return (operation.name, *(_hashable(getattr(arguments, name)) for name in operation.arguments.model_fields))


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value
