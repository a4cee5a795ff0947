"""Describes to a tool the service that it runs in."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from toolserver import API_VERSION
from toolserver.clock import Clock
from toolserver.core.metrics import Usage
from toolserver.money.ledger.statements import NoStatements, Statements
from toolserver.money.purchases.credit_sales import CreditSales, NoCreditSales


class ReceiptLookup(Protocol):
    """Looks up receipts and the log of uncharged calls."""

    async def verify(self, receipt: str | Mapping[str, Any], body_sha256: str | None = None) -> Mapping[str, Any]:
        """Verify a receipt and return whether it is genuine, with its content if it is."""
        ...

    async def no_charge(self, day: date) -> Mapping[str, Any]:
        """Return the calls of a day that were not charged."""
        ...

    async def no_charge_days(self) -> list[tuple[str, int]]:
        """Return the days on which calls were not charged, newest first, with their numbers."""
        ...


class ToolSearch(Protocol):
    """Finds tools of this service."""

    def describe(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return whole definitions of the tools that fit a query, best first."""
        ...


@dataclass(slots=True)
class ServiceInfo:
    """The running service: its API version, its age, whether its storage is writable."""

    clock: Clock
    data_dir: Path
    version: str = API_VERSION
    probe_targets: Mapping[str, str] = field(default_factory=dict)
    blocks: int = 5  # Ethereum blocks searched for large transfers
    usage: Usage = field(default_factory=Usage)
    started: float = field(default=0.0)
    evidence: ReceiptLookup | None = None
    payments: CreditSales = field(default_factory=NoCreditSales)
    statements: Statements = field(default_factory=NoStatements)
    x402: Any = None  # the x402 service that sells credits, if payments are enabled
    allowances: Any = None  # the allowances of tokens, if the ledger supports them
    tools: ToolSearch | None = None
    limits: Any = None  # the limits that owners set on their tokens, if this service keeps the ledger
    webhooks: Any = None  # the webhook subscriptions, if webhooks are enabled

    def __post_init__(self) -> None:
        self.started = self.started or self.clock.monotonic()

    @property
    def uptime_s(self) -> int:
        return int(self.clock.monotonic() - self.started)

    def storage_writable(self) -> bool:
        return os.access(self.data_dir, os.W_OK)
