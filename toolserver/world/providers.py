"""Load the simulated providers of packages of tools, which fills the table of routes."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable


def load_providers(packages: Iterable[str] = ("tools",)) -> None:
    """Import every module of each package's `simulated` part; a package without one simulates nothing."""
    for package in packages:
        name = f"{package}.simulated"
        # Tools may also be a single module, which cannot contain modules and for which find_spec raises.
        is_package = hasattr(importlib.import_module(package), "__path__")
        if not is_package or importlib.util.find_spec(name) is None:
            continue
        for module in pkgutil.iter_modules(importlib.import_module(name).__path__):
            importlib.import_module(f"{name}.{module.name}")
