"""Undo what a service's start does to garbage collection, without looking through all tests ever after."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_found_afterwards() -> Iterator[None]:
    """What is frozen within is thawed, looked through once, and what is alive is frozen again.

    A million objects that collecting the tests made were frozen before: not frozen again, they are looked through in
    each later collection of this process.
    """
    threshold = gc.get_threshold()
    try:
        yield
    finally:
        gc.enable()
        gc.set_threshold(*threshold)
        gc.unfreeze()
        gc.collect()
        gc.freeze()
