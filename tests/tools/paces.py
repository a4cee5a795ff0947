"""What hosts got, against the table of their paces."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from toolserver.registry.registry import Registry
from toolserver.upstream.source import HostGroup


class Sent(NamedTuple):
    """The requests to the hosts that share the limits of a group, as sorted seconds."""

    group: HostGroup
    hosts: tuple[str, ...]
    times: list[float]

    def __str__(self) -> str:
        return f"{self.group.name} ({', '.join(self.hosts)})"

    @property
    def most_in_a_period(self) -> int:
        """The most requests within the group's period, whenever it begins."""
        most = first = 0
        for count, at in enumerate(self.times, 1):
            while self.times[first] <= at - self.group.period_s:
                first += 1
            most = max(most, count - first)
        return most

    @property
    def most_ahead_s(self) -> float:
        """How far the requests were ahead of a distance that is always kept."""
        due = most = 0.0
        for at in self.times:
            due = max(due, at) + self.group.gap_s
            most = max(most, due - at)
        return most


def list_sent(registry: Registry, times: dict[str, list[float]]) -> Iterator[Sent]:
    """Return what the hosts of each group got, of the times of requests by host."""
    for group, hosts in _find_hosts(registry).items():
        for together in [{host} for host in hosts] if group.each_host else [hosts]:
            yield Sent(group, tuple(sorted(together)), sorted(at for host in together for at in times.get(host, ())))


def _find_hosts(registry: Registry) -> dict[HostGroup, set[str]]:
    """Return the hosts of each group, by what the sources' probe queries would ask."""
    found: dict[HostGroup, set[str]] = defaultdict(set)
    for source in registry.sources:
        try:
            plan = source.plan(source.make_probe(datetime.now(UTC)), {})
        except (AttributeError, TypeError, LookupError, ValueError):
            continue
        for request in plan if isinstance(plan, list | tuple) else [plan]:
            if request is not None:
                found[source.hosts].add(urlsplit(request.url).netloc)
    return found
