"""Imports libraries that would change settings of the interpreter, without letting them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """Ignore calls of sys.setrecursionlimit inside the block.

    One of web3's libraries raises the limit a hundredfold while it is imported, which takes a second in a thread while
    requests are served. With so high a limit, deeply nested JSON from outside could crash the process.
    """
    change = sys.setrecursionlimit
    sys.setrecursionlimit = lambda limit, /: None
    try:
        yield
    finally:
        sys.setrecursionlimit = change
