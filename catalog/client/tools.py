"""The old place of the types of payloads, which are in `toolserver.client.tools` now. Deprecated with its package."""

from typing import Any

from toolserver.client import tools


def __getattr__(name: str) -> Any:
    """Return what `toolserver.client.tools` has under this name. Raise AttributeError."""
    return getattr(tools, name)
