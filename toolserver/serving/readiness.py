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
UNSOLD = {  # how pages name the parts without which nothing can be bought
    "ledger": "the ledger cannot be written",
    "disk": "the disk has too little free space",
    "chain": "no server of the chain answers, so that no payment can be confirmed",
}


class Readiness:
    """Checks one instance. `file` is the ledger's, None if nothing is stored; `is_stopping` says if it is stopping.

    `losses` say of parts by name (`redis`, `chain`, `clock`) in a sentence for the operator
    that they are lost, or None; free calls are answered without them.

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
        losses: Mapping[str, Callable[[], str | None]] = MappingProxyType({}),
        probe_s: float = PROBE_S,
    ) -> None:
        self._file = file
        self._data_dir = settings.data_dir
        self._least_free = settings.storage.least_free_bytes
        self._monotonic, self._is_stopping, self._sells = monotonic, is_stopping, sells
        self._losses, self._probe_s = losses, probe_s
        self._one_at_a_time = anyio.Lock()
        self._found: dict[str, bool] = {}
        self._reason = ""  # why the last write failed
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
        confirmed. `disk`: there is too little space. `clock`: it is more than 5 s off the
        database's, whose time is taken instead. Nothing is sold without ledger or disk.
        """
        checks = await self.check()
        is_ready = checks["running"]
        return {"ready": is_ready, "checks": checks, "degraded": list(self.list_losses(checks))}, is_ready

    def list_losses(self, checks: Mapping[str, bool]) -> dict[str, str]:
        """Return what the instance works without, each with a sentence for the operator. `checks` are fresh ones."""
        losses = {
            "ledger": None if self._has_ledger(checks) else self._describe_ledger_loss(checks),
            **{part: describe() for part, describe in self._losses.items()},
            "disk": self._describe_disk_loss() if not checks.get("disk_space", True) else None,
        }
        return {part: loss for part, loss in losses.items() if loss is not None}

    def _describe_ledger_loss(self, checks: Mapping[str, bool]) -> str:
        if not self._sells():
            return "Nothing is sold: the ledger of the sister service is away, or rejects this instance."
        if not checks.get("ledger_file", True):
            return "Nothing is sold: the ledger's file was moved or replaced. Put it back, or restart."
        return f"Nothing is sold: the ledger cannot be written. {self._reason}".strip()

    def _describe_disk_loss(self) -> str:
        least = f"storage.least_free_mb ({self._least_free / 1_000_000:g} MB)"
        return f"Nothing is sold: the disk of {self._data_dir} has less than {least} free. Free some space."

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
            "ledger_write": await self._can_write(file),
        }

    async def _can_write(self, file: GroupCommit) -> bool:
        try:
            with anyio.fail_after(self._probe_s):
                await file.probe()
        except (StorageFailed, TimeoutError) as failure:
            self._reason = str(failure) or "no answer in time"
            log.warning("the ledger cannot be written", extra={"reason": self._reason})
            return False
        return True


def _has_room(folder: Path, least_free: int) -> bool:
    try:
        return free_bytes(folder) >= least_free
    except OSError:
        return False
