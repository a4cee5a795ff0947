"""What a tool may know about the service it runs in."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from toolserver import API_VERSION
from toolserver.clock import Clock
from toolserver.payments.offers import Payments, Unsold
from toolserver.usage import Usage


class Evidence(Protocol):
    """What this service can show about calls of the past."""

    async def verify(self, given: str | Mapping[str, Any], body_sha256: str | None = None) -> Mapping[str, Any]:
        """Whether a receipt is genuine, and what it says if it is."""
        ...

    async def no_charge(self, day: date) -> Mapping[str, Any]:
        """The calls of a day that were not charged."""
        ...

    async def no_charge_days(self) -> list[tuple[str, int]]:
        """The days on which any call was not charged, the last one first, and how many."""
        ...


@dataclass(slots=True)
class Host:
    """The running service: its API version, its age, whether its storage can be written."""

    clock: Clock
    data_dir: Path
    version: str = API_VERSION
    probe_targets: Mapping[str, str] = field(default_factory=dict)
    blocks: int = 5  # of Ethereum, that are looked through for large transfers
    usage: Usage = field(default_factory=Usage)
    started: float = field(default=0.0)
    evidence: Evidence | None = None
    payments: Payments = field(default_factory=Unsold)
    x402: Any = None  # what sells credits for signed payments, where they are taken

    def __post_init__(self) -> None:
        self.started = self.started or self.clock.monotonic()

    @property
    def uptime_s(self) -> int:
        return int(self.clock.monotonic() - self.started)

    def storage_writable(self) -> bool:
        return os.access(self.data_dir, os.W_OK)
