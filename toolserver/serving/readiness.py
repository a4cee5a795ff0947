"""Check whether an instance can take calls, as `/readyz` and `toolserver doctor` report it."""

import logging
from collections.abc import Callable
from pathlib import Path

import anyio

from toolserver.core.shared_memory import SharedMemory
from toolserver.settings import Settings
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.sqlite import free_bytes

log = logging.getLogger(__name__)

PROBE_S = 1.0  # callers would not wait for a write that takes longer
KEEP_S = 0.5  # how long a verdict is cached: anyone may ask, and each verdict costs a write


class Readiness:
    """Checks one instance. `file` is the ledger's, None if nothing is stored; `is_stopping` says if it is stopping.

    Conditions by name: `running`, the instance is not being stopped; `disk_space`, the disk
    of the data directory has enough free space; `ledger_file`, it is still the file that was
    opened; `ledger_write`, a write to it reached the disk within a second.
    """

    def __init__(
        self,
        file: GroupCommit | None,
        settings: Settings,
        *,
        monotonic: Callable[[], float],
        is_stopping: Callable[[], bool] = lambda: False,
        memory: SharedMemory | None = None,
        sells: Callable[[], bool] = lambda: True,
        probe_s: float = PROBE_S,
    ) -> None:
        self._file, self._data_dir, self._least_free = file, settings.data_dir, settings.storage.least_free_bytes
        self._monotonic, self._is_stopping, self._memory, self._sells = monotonic, is_stopping, memory, sells
        self._probe_s = probe_s
        self._one_at_a_time = anyio.Lock()
        self._found: dict[str, bool] = {}
        self._until = float("-inf")

    async def check(self) -> dict[str, bool]:
        """Return each condition by name and whether it holds now."""
        async with self._one_at_a_time:
            if self._monotonic() >= self._until:
                self._found = {} if self._file is None else await self._check_storage(self._file)
                self._until = self._monotonic() + KEEP_S
        return {"running": not self._is_stopping(), **self._found}

    def list_degraded(self) -> list[str]:
        """Return what the instance works without.

        `redis`: it uses its own memory and its share of the limits. `ledger`: the ledger that
        it follows is away or rejects its requests, so that it sells nothing.
        """
        lost = ["redis"] if self._memory is not None and self._memory.is_lost else []
        return lost if self._sells() else [*lost, "ledger"]

    async def _check_storage(self, file: GroupCommit) -> dict[str, bool]:
        return {
            "disk_space": _has_room(self._data_dir, self._least_free),
            "ledger_file": file.is_same_file(),
            "ledger_write": await _can_write(file, self._probe_s),
        }


def _has_room(folder: Path, least_free: int) -> bool:
    try:
        return free_bytes(folder) >= least_free
    except OSError:
        return False


async def _can_write(file: GroupCommit, within_s: float) -> bool:
    try:
        with anyio.fail_after(within_s):
            await file.probe()
    except (StorageFailed, TimeoutError) as failure:
        log.warning("not ready: the ledger cannot be written", extra={"reason": str(failure) or "no answer in time"})
        return False
    return True
