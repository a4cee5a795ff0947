"""Measure one instance for its metrics: what it works without, disk, clock, chain, database and queues."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from toolserver import __version__
from toolserver.clock import Clock, ClockSkew
from toolserver.serving.money import MoneyParts
from toolserver.serving.readiness import Readiness
from toolserver.settings import Settings
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import StoreLoad
from toolserver.webhooks.store import WebhookStore

MEASURE_EVERY_S = 15.0
PARTS = ("ledger", "redis", "chain", "clock", "disk")


@dataclass(frozen=True, slots=True)
class Measured:
    """The parts that an instance works without, and what waits.

    `webhooks_late_s` are the seconds since the webhook that is due the longest, and
    `log_waiting` the uncharged calls that are not yet in the log.
    """

    losses: frozenset[str] = frozenset()
    webhooks_late_s: float = 0.0
    log_waiting: int = 0


@dataclass(slots=True, eq=False)
class InstanceWatch(Collector):
    """The metrics of one instance. `measure` reads what takes a query; the rest is read at each scrape."""

    settings: Settings
    readiness: Readiness
    money: MoneyParts
    skew: ClockSkew
    clock: Clock
    webhooks: WebhookStore | None = None
    measured: Measured = field(default=Measured(), init=False)

    async def measure(self) -> None:
        """Check the parts of the instance and count what waits. Without its store, the last counts stay."""
        losses = frozenset(self.readiness.list_losses(await self.readiness.check()))
        self.measured = replace(self.measured, losses=losses)
        try:
            self.measured = Measured(losses, await self._read_webhooks(), await self._read_log())
        except StorageFailed:
            return

    async def _read_webhooks(self) -> float:
        due = None if self.webhooks is None else await self.webhooks.next_due()
        return 0.0 if due is None else max(0.0, self.clock.time() - due / 1000)

    async def _read_log(self) -> int:
        if (evidence := self.money.evidence) is None:
            return 0
        day = await evidence.no_charge(self.clock.now().date())
        return int(day["log"]["waiting"])

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        about = "1, with the version that runs, its Python and its HTTP server"
        build = GaugeMetricFamily("toolserver_build_info", about, labels=["version", "python", "server"])
        build.add_metric([__version__, platform.python_version(), self.settings.server], 1)
        yield build
        lost = GaugeMetricFamily("toolserver_degraded", "1 while the instance works without a part", labels=["part"])
        for part in PARTS:
            lost.add_metric([part], part in self.measured.losses)
        yield lost
        yield from self._measure_disk()
        ahead = "Seconds that the database's clock is ahead of this machine's"
        yield GaugeMetricFamily("toolserver_clock_skew_seconds", ahead, self.skew.seconds)
        late = "Seconds since the webhook was due that has waited the longest"
        yield GaugeMetricFamily("toolserver_webhooks_late_seconds", late, self.measured.webhooks_late_s)
        waiting = "Uncharged calls that are not in the public log yet"
        yield GaugeMetricFamily("toolserver_log_waiting_calls", waiting, self.measured.log_waiting)
        yield from self._count_chain()
        if self.money.file is not None and (load := self.money.file.measure()) is not None:
            yield from describe_database(load)

    def _measure_disk(self) -> Iterator[Metric]:
        try:
            disk = os.statvfs(self.settings.data_dir)
        except OSError:  # nothing was stored yet, or the disk is gone, which `toolserver_degraded` says
            return
        free = "Bytes that can still be written on the disk of the data directory"
        yield GaugeMetricFamily("toolserver_disk_free_bytes", free, disk.f_bavail * disk.f_frsize)
        yield GaugeMetricFamily("toolserver_disk_bytes", "Size of that disk", disk.f_blocks * disk.f_frsize)

    def _count_chain(self) -> Iterator[Metric]:
        if (servers := self.money.payments.count_servers()) is None:
            return
        about = "RPC servers of the chain by state; `unasked` ones have not been needed yet"
        family = GaugeMetricFamily("toolserver_chain_servers", about, labels=["state"])
        family.add_metric(["usable"], servers.usable)
        family.add_metric(["failing"], servers.failing)
        family.add_metric(["unasked"], max(0, servers.configured - servers.usable - servers.failing))
        yield family


def describe_database(load: StoreLoad) -> Iterator[Metric]:
    """Yield the metrics of a database that instances share."""
    yield GaugeMetricFamily("toolserver_database_connections", "Open connections to the database", load.connections)
    yield GaugeMetricFamily("toolserver_database_waiting", "Operations that wait for a connection", load.waiting)
    yield GaugeMetricFamily("toolserver_database_owed", "Writes that wait for the database to come back", load.owed)
    yield CounterMetricFamily("toolserver_database_groups", "Transactions, each of all that waited", load.groups)
    yield CounterMetricFamily("toolserver_database_seconds", "Seconds spent in them", load.busy_s)
    retries = "Transactions that were run again: conflicts and lost connections"
    yield CounterMetricFamily("toolserver_database_retries", retries, load.retries)
