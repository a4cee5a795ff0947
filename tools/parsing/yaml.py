"""Read YAML that others wrote, bounded in depth and size. Scalars stay text."""

from typing import Any

import yaml

DEEPEST = 50  # levels; the C loader of a text of a million brackets would end the process
MOST_EVENTS = 50_000  # about two for each value; each takes 50 microseconds

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # constructs text, lists and mappings, and nothing else


def read_yaml(text: str) -> Any:
    """Return the value of a YAML text. Raise ValueError for anything else, and for one too deep or too large."""
    depth = 0
    try:
        for number, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEEPEST or number > MOST_EVENTS:
                raise ValueError("nested too deep, or too many values")
        loader = _LOADER(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}"[:200]) from error
