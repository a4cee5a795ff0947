"""What a language model would say to a tool: arguments that its schema and earlier answers suggest."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

METHODS = ("GET", "POST", "PATCH", "DELETE")


def order_of_calls(method: str, path: str) -> tuple[bool, int]:
    """A key to sort calls by: what reads comes first, what ends something last."""
    return "{" in path, METHODS.index(method)


@dataclass
class Model:
    """`known` is what the user asked for, by the names of arguments; `words` what answers said, latest first."""

    known: dict[str, Any]
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = {"ip": "8.8.8.8"} | self.known

    def hear(self, *answers: Any) -> None:
        """Remember every text of some answers."""
        self.words[:0] = texts_in(list(answers))

    def choose_arguments(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The required arguments, and those of the others for which the schema says a word."""
        required = schema.get("required", [])
        said = [name for name, field in schema["properties"].items() if field.get("enum") and "default" in field]
        names = dict.fromkeys([*required, *said])
        return {name: self._value(name, schema["properties"][name]) for name in names}

    def _value(self, name: str, schema: dict[str, Any]) -> Any:
        schema = next(iter(schema.get("anyOf", [schema])))
        pattern = schema.get("pattern")
        said = [word for word in ("text", *self.words) if pattern and re.search(pattern, word)]
        if name in self.known or said:
            return self.known[name] if name in self.known else said[0]
        if words := schema.get("enum") or schema.get("examples"):
            return words[0]
        kinds = {"integer": max(schema.get("minimum", 2), 2), "number": max(schema.get("minimum", 2), 2)}
        return kinds.get(schema["type"], "text" if schema["type"] == "string" else {})


def texts_in(value: Any) -> Iterator[str]:
    """Every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in texts_in(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in texts_in(inner))
