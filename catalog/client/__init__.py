"""The old place of the Python client, which is `toolserver.client` now. Deprecated for 90 days, then removed."""

import warnings

from toolserver.client import AsyncToolClient, ToolAnswer, ToolClient, Unreachable

__all__ = ["AsyncToolClient", "ToolAnswer", "ToolClient", "Unreachable"]

warnings.warn("catalog.client is deprecated: import from toolserver.client", DeprecationWarning, stacklevel=2)
