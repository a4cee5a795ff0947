"""Names the library of HTTP clients: httpx, or its fork httpx2, which has the same classes.

Every other module takes `httpx` from here. Where it is not needed at once, it is imported in
the function that needs it, because it takes long to load. To change to the fork, import
`httpx2 as httpx` here; the tests of `upstream` and `core` pass with both
(HTTP_LIBRARY=httpx2).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["httpx"]


@contextmanager
def _without(module: str) -> Iterator[None]:
    """Make an import of this module fail while the block runs."""
    loaded = sys.modules.get(module)
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
        if loaded is not None:
            sys.modules[module] = loaded


with _without("httpx._main"):  # its command line: where rich is installed, that takes 70 modules and 3 MB
    import httpx
