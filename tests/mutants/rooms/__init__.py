"""Faults by room: a module a room, each with a tuple `FAULTS` that the tests of the room must see.

Most come from `python -m tests.mutants.random_faults`, which makes them by chance; a survivor gets a test.
"""

import importlib
import pkgutil

from tests.mutants.faults import Mutant


def list_room_faults() -> list[Mutant]:
    """The faults of every room, in the order of the rooms' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [fault for name in names for fault in importlib.import_module(f"{__name__}.{name}").FAULTS]
