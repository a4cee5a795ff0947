"""Import the product, and what it imports when it serves. `tests.live.forking` forks programs from a process with this.

Nothing but modules may come into being here: a thread would be missing in the forks, an open file be shared by them.
"""

import gc
import importlib
import importlib.util
import pkgutil
import sys
import threading

PACKAGES = ("toolserver", "tools", "rest_bridge", "catalog")
LATE = (
    "aiohttp.web",
    "anyio._backends._asyncio",
    "asyncpg",
    "cryptography.hazmat.primitives.asymmetric.ec",
    "eth_hash.backends.pycryptodome",
    "httptools",
    "mcp.server.lowlevel",
    "nacl.secret",
    "nacl.signing",
    "redis.asyncio",
    "uvicorn",
    "uvloop",
)


def import_all() -> None:
    """Import every module of the product. Raises RuntimeError when one of them starts a thread."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    for name in LATE:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    if threading.active_count() > 1:
        raise RuntimeError(f"an import has started {threading.enumerate()}")
    gc.collect()
    gc.freeze()  # pages of memory stay shared with the forks


def check_that_all_is_imported() -> None:
    """Raise RuntimeError when the process that forked has imported less: `multiprocessing` hides failed imports."""
    if "toolserver.app" not in sys.modules or not gc.get_freeze_count():
        raise RuntimeError("the product was not imported before the fork")
