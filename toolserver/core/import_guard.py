"""Imports libraries that would change interpreter settings, and prevents the change."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """Ignore calls of sys.setrecursionlimit inside the block.

    One of web3's libraries raises the limit a hundredfold during its import, which takes a
    second in a thread while requests are served. With such a high limit, deeply nested JSON
    from a client could crash the process.
    """
    change = sys.setrecursionlimit
    sys.setrecursionlimit = lambda limit, /: None
    try:
        yield
    finally:
        sys.setrecursionlimit = change
