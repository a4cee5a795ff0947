"""Importing what web3 brings without letting it change the interpreter under everybody else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """One of web3's libraries raises the recursion limit a hundredfold when it is imported, which takes a second, in a
    thread, while requests are served: deeply nested JSON from outside could end the process in that time.
    """
    change = sys.setrecursionlimit
    sys.setrecursionlimit = lambda limit, /: None
    try:
        yield
    finally:
        sys.setrecursionlimit = change
