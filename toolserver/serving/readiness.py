"""Check whether an instance can take calls, as `/readyz`, `/healthz/ledger` and `toolserver doctor` report it."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio

from toolserver.settings import Settings
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.sqlite import free_bytes

log = logging.getLogger(__name__)

PROBE_S = 1.0  # callers would not wait for a write that takes longer
KEEP_S = 0.5  # how long a verdict is cached: anyone may ask, and each verdict costs a write


LEDGER_CHECKS = ("ledger_file", "ledger_write")  # without one of them, the ledger is down


class Readiness:
    """Checks one instance. `file` is the ledger's, None if nothing is stored; `is_stopping` says if it is stopping.

    `losses` say of parts by name (`redis`, `chain`) whether they are lost; free calls are answered without them.

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
        sells: Callable[[], bool] = lambda: True,
        losses: Mapping[str, Callable[[], bool]] = MappingProxyType({}),
        probe_s: float = PROBE_S,
    ) -> None:
        self._file = file
        self._data_dir = settings.data_dir
        self._least_free = settings.storage.least_free_bytes
        self._monotonic, self._is_stopping, self._sells = monotonic, is_stopping, sells
        self._losses, self._probe_s = losses, probe_s
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

    async def describe(self) -> tuple[dict[str, Any], bool]:
        """Return the body of `/readyz`, and whether calls should be sent here: free ones are answered until the stop.

        `degraded` lists what the instance works without. `ledger`: it cannot be written, or
        the followed one is away or rejects requests. `redis`: the instance uses its own memory
        and its share of the limits. `chain`: no RPC server answers, so that no payment is
        confirmed. `disk`: there is too little space. Nothing is sold without ledger or disk.
        """
        checks = await self.check()
        lost = {
            "ledger": not self._has_ledger(checks),
            **{part: is_lost() for part, is_lost in self._losses.items()},
            "disk": not checks.get("disk_space", True),
        }
        is_ready = checks["running"]
        return {"ready": is_ready, "checks": checks, "degraded": [part for part in lost if lost[part]]}, is_ready

    async def describe_ledger(self) -> tuple[dict[str, Any], bool]:
        """Return the body of `/healthz/ledger`, and whether paid calls are answered."""
        checks = await self.check()
        sells = all(checks.values()) and self._has_ledger(checks)
        return {"ledger": sells, "checks": checks}, sells

    def _has_ledger(self, checks: Mapping[str, bool]) -> bool:
        return self._sells() and all(checks.get(name, True) for name in LEDGER_CHECKS)

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
