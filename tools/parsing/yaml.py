"""Read YAML that others wrote, bounded in depth and size. Scalars stay text."""

import re
from textwrap import dedent
from typing import Any

DEEPEST = 50  # levels; the C loader of a text of a million brackets would end the process
MOST_ITEMS = 5_000  # each is read by itself
MOST_EVENTS = 50_000  # about two for each value; each takes 50 microseconds

_ITEM = re.compile(r"^( *)- ", re.MULTILINE)


def split_items(text: str) -> list[str]:
    """Return the text of each item of a list, so that one that is not YAML can be left out alone.

    Raise ValueError for another value than a list, and for too many items.
    """
    first = _ITEM.search(text)
    if first is None:
        if read_yaml(text):
            raise ValueError("no list")
        return []
    starts = [match.start() for match in _ITEM.finditer(text) if match[1] == first[1]]
    if len(starts) > MOST_ITEMS:
        raise ValueError("too many items")
    return [dedent(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def read_yaml(text: str) -> Any:
    """Return the value of a YAML text. Raise ValueError for anything else, and for one too deep or too large."""
    import yaml  # with the first such body: most servers never read one

    loader_kind = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # constructs text, lists and mappings, and nothing else
    depth = 0
    try:
        for number, event in enumerate(yaml.parse(text, Loader=loader_kind)):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEEPEST or number > MOST_EVENTS:
                raise ValueError("nested too deep, or too many values")
        loader = loader_kind(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}"[:200]) from error
