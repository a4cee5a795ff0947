"""Imports libraries without a side effect: a changed interpreter setting, or further libraries that nobody will use."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


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


class _LeftOut(ModuleType):
    """Stands where a module was left out. Each of its names can be imported, and raises ImportError when called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        module = self.__name__

        def refuse(self: Any, *_: Any, **__: Any) -> None:
            raise ImportError(f"{module} was left out when its importer was loaded, because nothing uses {name}")

        return type(name, (), {"__init__": refuse, "__module__": module})


@contextmanager
def left_out(*names: str) -> Iterator[None]:
    """Import inside the block without these modules, for a library that imports parts of itself which nobody uses.

    The library gets a stand-in for each name. Modules that are already loaded stay, and
    afterwards each name can be imported as usual.
    """
    stand_ins = {name: _LeftOut(name) for name in names if name not in sys.modules}
    sys.modules.update(stand_ins)
    for name, module in stand_ins.items():
        package, _, leaf = name.rpartition(".")
        if package in stand_ins:
            setattr(stand_ins[package], leaf, module)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
