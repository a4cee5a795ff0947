"""Counts calls and what they need: metrics in the Prometheus format, and the calls by the caller's user agent.

`Usage` counts calls by family of user agents, hourly over two days, and keeps the last calls, without address or token.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from toolserver.core.waiting_room import WAIT_REASONS, WaitCounts

HostBudget = tuple[str, str, int, int, int]
"""Host group, host, requests in total, requests left, and requests left for queries that callers choose."""

Refusing = tuple[str, int, float]
"""A host that refused us, the status, and the seconds until it is queried again."""

Failing = tuple[str, float]
"""A source that keeps failing, and the seconds until it is queried again."""

HOST_REFUSED, SOURCE_CLOSED = "toolserver_host_refused_seconds", "toolserver_source_closed_seconds"

_LATENCY = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class _BudgetCollector(Collector):
    """Rebuilds the gauges of the hosts' budgets at each scrape."""

    def __init__(self, list_budgets: Callable[[], Iterable[HostBudget]]) -> None:
        self._list_budgets = list_budgets

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        about = "Requests that may still be sent to a group of hosts within its period, by lane"
        family = GaugeMetricFamily("toolserver_host_budget_left", about, labels=["hosts", "host", "lane"])
        for group, host, _, left, chosen_left in self._list_budgets():
            family.add_metric([group, host, "all"], left)
            family.add_metric([group, host, "callers"], chosen_left)
        yield family


class _AnnouncementCollector(Collector):
    """Rebuilds the gauges of upstream announcements at each scrape."""

    def __init__(self, list_announcements: Callable[[], Iterable[tuple[str, str, str, float]]]) -> None:
        self._list_announcements = list_announcements

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        about = "1 for a source whose upstream announces a deprecation, a sunset, a warning or a permanent move"
        family = GaugeMetricFamily("toolserver_source_announcement", about, labels=["source", "kind", "said"])
        for source, kind, said, _ in self._list_announcements():
            family.add_metric([source, kind, said], 1)
        yield family


class CallTimes(NamedTuple):
    """The durations of calls since the start. `counts` has the timed calls by the upper bound
    (in seconds) of their bucket. Answers from the cache are not timed.
    """

    calls: int
    hits: int
    counts: dict[float, float]

    @property
    def timed(self) -> int:
        """The number of timed calls."""
        return int(sum(self.counts.values()))

    def within(self, share: float) -> float | None:
        """Return the smallest bound within which this share of the timed calls ended, or None beyond the last bound."""
        ended = 0.0
        for bound in sorted(self.counts):
            ended += self.counts[bound]
            if self.timed and ended >= share * self.timed:
                return None if math.isinf(bound) else bound
        return None


class _ClosedCollector(Collector):
    """Rebuilds the gauges of hosts and sources that are not queried (refusing or failing) at each scrape."""

    def __init__(self, list_refusing: Callable[[], Iterable[Refusing]], list_failing: Callable[[], Iterable[Failing]]):
        self._list_refusing, self._list_failing = list_refusing, list_failing

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        about = "Seconds for which a host that refused us is not asked"
        hosts = GaugeMetricFamily(HOST_REFUSED, about, labels=["host", "status"])
        for host, status, left_s in self._list_refusing():
            hosts.add_metric([host, str(status)], left_s)
        yield hosts
        about = "Seconds for which a source that keeps failing is not asked; 0 when the next request finds out"
        sources = GaugeMetricFamily(SOURCE_CLOSED, about, labels=["source"])
        for source, left_s in self._list_failing():
            sources.add_metric([source], left_s)
        yield sources


class ConnectionCounts(NamedTuple):
    """The connections of callers: the maximum, the clients that have one, the number by phase,
    and those that the server ended or refused since its start, by reason.
    """

    most: int
    clients: int
    phases: Mapping[str, int]
    closed: Mapping[str, int]


class _ConnectionCollector(Collector):
    """Rebuilds the gauges of connections at each scrape."""

    def __init__(self, count: Callable[[], ConnectionCounts]) -> None:
        self._count = count

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        counts = self._count()
        phases = GaugeMetricFamily("toolserver_connections", "Connections of callers by phase", labels=["phase"])
        for phase, number in counts.phases.items():
            phases.add_metric([phase], number)
        yield phases
        yield GaugeMetricFamily("toolserver_connections_limit", "How many there may be", counts.most)
        yield GaugeMetricFamily("toolserver_connected_clients", "Clients that have a connection", counts.clients)
        about = "Connections that the server ended or refused, by reason"
        closed = CounterMetricFamily("toolserver_connections_closed", about, labels=["reason"])
        for reason, number in counts.closed.items():
            closed.add_metric([reason], number)
        yield closed


class _WaitCollector(Collector):
    """Rebuilds the gauges of waits at each scrape. Rooms of the same name are added up."""

    def __init__(self) -> None:
        self.counting: list[Callable[[], WaitCounts]] = []

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily("toolserver_waiting", "Calls that wait, by what they wait for", labels=["wait"])
        most = GaugeMetricFamily("toolserver_waiting_limit", "How many may wait for it", labels=["wait"])
        about = "Waits that were refused or ended: a client has its share, all places are taken, or the time is over"
        refused = CounterMetricFamily("toolserver_waits_refused", about, labels=["wait", "reason"])
        rooms: dict[str, list[WaitCounts]] = {}
        for count in self.counting:
            counts = count()
            rooms.setdefault(counts.room, []).append(counts)
        for room, parts in rooms.items():
            waiting.add_metric([room], sum(part.waiting for part in parts))
            most.add_metric([room], sum(part.most for part in parts))
            for reason in WAIT_REASONS:
                refused.add_metric([room, reason], sum(part.refused.get(reason, 0) for part in parts))
        yield from (waiting, most, refused)


class MessageCounts:
    """The number of MCP messages received by POST, and of those that only the SDK could answer."""

    __slots__ = ("by_sdk", "taken")

    def __init__(self) -> None:
        self.taken = self.by_sdk = 0


class Metrics:
    """The metrics of one service. Nothing is global, so that several apps in one process stay separate."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "toolserver_calls_total",
            "Calls by tool, tier and outcome",
            ["tool", "tier", "outcome"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "toolserver_call_seconds", "Time per call", ["tool"], buckets=_LATENCY, registry=self.registry
        )
        self._fetches = Counter(
            "toolserver_source_fetches_total",
            "Exchanges by source and outcome",
            ["source", "outcome"],
            registry=self.registry,
        )
        self._fetch_seconds = Histogram(
            "toolserver_source_seconds", "Time per exchange", ["source"], buckets=_LATENCY, registry=self.registry
        )
        self._dropped = Counter(
            "toolserver_host_arguments_total",
            "Arguments that MCP hosts add by themselves, dropped",
            ["name"],
            registry=self.registry,
        )
        self._credits = Counter("toolserver_credits_charged_total", "Credits charged", ["tool"], registry=self.registry)
        self._released = Counter(
            "toolserver_credits_released_total", "Credits released, by reason", ["reason"], registry=self.registry
        )
        self._attempts = Counter(
            "toolserver_webhook_attempts_total",
            "Attempts to deliver a webhook, by outcome",
            ["outcome"],
            registry=self.registry,
        )
        self._up = Gauge(
            "toolserver_source_up", "1 when the last exchange was good", ["source"], registry=self.registry
        )
        self._messages = self._count_messages()
        self._waits = _WaitCollector()
        self.registry.register(self._waits)
        self.process = ProcessCollector(registry=self.registry)
        self.mcp_messages = MessageCounts()
        self._counted: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        self._fetched: dict[tuple[str, str], Counter] = {}
        self._sent: dict[str, tuple[Histogram, Gauge]] = {}
        self._hits: dict[tuple[str, str], int] = {}
        self._charged: dict[str, int] = {}

    def _count_messages(self) -> Counter:
        about = "MCP messages by what answered them: prepared bytes and our own calls, or the SDK"
        return Counter("toolserver_mcp_messages_total", about, ["answered"], registry=self.registry)

    def follow(self, health: Callable[[], tuple[str, int, float, int, int | None]]) -> None:
        """Add gauges for the ledger of a sister service.

        `health` returns state, times opened, wait, outbox size, and the status that rejects every request, or None.
        """

        def gauge(name: str, about: str, value: Callable[[], float]) -> None:
            Gauge(name, about, registry=self.registry).set_function(value)

        gauge("toolserver_ledger_up", "1 while the ledger that is followed answers", lambda: health()[0] == "closed")
        gauge("toolserver_ledger_away", "How often it was given up", lambda: health()[1])
        rejected = "1 while it rejects every request: key, clock or service do not match"
        gauge("toolserver_ledger_rejected", rejected, lambda: health()[4] is not None)
        gauge("toolserver_ledger_outbox", "Releases that it has not been told of yet", lambda: health()[3])

    def watch_payments(self, backlog: Callable[[], tuple[int, float, int]]) -> None:
        """Add gauges of signed payments. `backlog` returns how many are open, the oldest one's age, and the cases."""

        def gauge(name: str, about: str, value: Callable[[], float]) -> None:
            Gauge(name, about, registry=self.registry).set_function(value)

        gauge("toolserver_payments_pending", "Signed payments whose end is not known", lambda: backlog()[0])
        gauge("toolserver_payments_pending_age_seconds", "Age of the oldest of them", lambda: backlog()[1])
        gauge("toolserver_payments_in_review", "Signed payments that a person has to look at", lambda: backlog()[2])

    def watch_chain_book(self, measure: Callable[[], tuple[int, float, int, bool]]) -> None:
        """Add gauges of the book of the chain. `measure` returns the last final block that was
        read, the seconds since, the addresses that do not add up, and whether the last attempt
        to read failed.
        """

        def gauge(name: str, about: str, value: Callable[[], float]) -> None:
            Gauge(name, about, registry=self.registry).set_function(value)

        gauge("toolserver_chain_book_block", "Last final block that this instance has read", lambda: measure()[0])
        gauge("toolserver_chain_book_age_seconds", "Seconds since it was read", lambda: measure()[1])
        gauge("toolserver_chain_book_differences", "Addresses whose transfers do not add up", lambda: measure()[2])
        gauge("toolserver_chain_book_failing", "1 while the chain cannot be read", lambda: measure()[3])

    def follow_shared_memory(self, health: Callable[[], tuple[bool, int, int]]) -> None:
        """Add gauges for Redis. `health` returns whether it answers, and how often it was lost and refused a script."""

        def gauge(name: str, about: str, value: Callable[[], float]) -> None:
            Gauge(name, about, registry=self.registry).set_function(value)

        gauge("toolserver_redis_up", "1 while the Redis that instances share answers", lambda: health()[0])
        gauge("toolserver_redis_lost", "How often it was lost", lambda: health()[1])
        gauge("toolserver_redis_refused", "Scripts that it refused to run", lambda: health()[2])

    def follow_budgets(self, list_budgets: Callable[[], Iterable[HostBudget]]) -> None:
        """Show the result of `list_budgets` at each scrape."""
        self.registry.register(_BudgetCollector(list_budgets))

    def follow_announcements(self, list_announcements: Callable[[], Iterable[tuple[str, str, str, float]]]) -> None:
        """Show upstream announcements: source, kind, text and time."""
        self.registry.register(_AnnouncementCollector(list_announcements))

    def follow_closed(
        self, list_refusing: Callable[[], Iterable[Refusing]], list_failing: Callable[[], Iterable[Failing]]
    ) -> None:
        """Show which hosts and sources are not queried, and for how long."""
        self.registry.register(_ClosedCollector(list_refusing, list_failing))

    def follow_waits(self, count: Callable[[], WaitCounts]) -> None:
        """Show the figures of a kind of wait at each scrape."""
        self._waits.counting.append(count)

    def follow_connections(self, count: Callable[[], ConnectionCounts]) -> None:
        """Show the connections of callers at each scrape."""
        self.registry.register(_ConnectionCollector(count))

    def register(self, collector: Collector) -> None:
        """Show at each scrape what a collector yields."""
        self.registry.register(collector)

    def hit(self, tool: str, tier: str) -> None:
        """Count a call answered from the cache. This is a hot path, so the counter is updated at each scrape."""
        key = (tool, tier)
        self._hits[key] = self._hits.get(key, 0) + 1

    def called(self, tool: str, tier: str, outcome: str, seconds: float) -> None:
        key = (tool, tier, outcome)
        children = self._counted.get(key)
        if children is None:  # finding a labelled child takes longer than counting
            children = self._counted[key] = self._calls.labels(tool, tier, outcome), self._seconds.labels(tool)
        children[0].inc()
        children[1].observe(seconds)

    def fetched(self, source: str, outcome: str, seconds: float, was_sent: bool) -> None:
        """Count an exchange. If no request was sent to the source, neither its time nor `up` changes."""
        fetches = self._fetched.get((source, outcome))
        if fetches is None:
            fetches = self._fetched[source, outcome] = self._fetches.labels(source, outcome)
        fetches.inc()
        if was_sent:
            children = self._sent.get(source)
            if children is None:
                children = self._sent[source] = self._fetch_seconds.labels(source), self._up.labels(source)
            children[0].observe(seconds)
            children[1].set(outcome == "ok")

    def dropped_argument(self, name: str) -> None:
        """Count an argument that a host added automatically; `name` is one of a fixed list."""
        self._dropped.labels(name).inc()

    def attempted(self, outcome: str) -> None:
        """Count an attempt to deliver a webhook: `ok`, or one word for the failure."""
        self._attempts.labels(outcome).inc()

    def settled(self, tool: str, credits: int, reason: str | None) -> None:
        if reason is None:
            self._charged[tool] = self._charged.get(tool, 0) + credits
        else:
            self._released.labels(reason).inc(credits)

    def call_times(self) -> CallTimes:
        """Return the durations of calls since the start, for all tools together."""
        calls = hits = sum(self._hits.values())
        for sample in _samples(self._calls, "toolserver_calls_total"):
            calls += int(sample.value)
            hits += int(sample.value) if sample.labels["outcome"] == "hit" else 0
        reached: dict[float, float] = {}
        for sample in _samples(self._seconds, "toolserver_call_seconds_bucket"):
            bound = float(sample.labels["le"])
            reached[bound] = reached.get(bound, 0) + sample.value
        bounds = sorted(reached)
        counts = {bound: reached[bound] - reached.get(before, 0) for before, bound in pairwise([-1.0, *bounds])}
        return CallTimes(calls, hits, counts)

    def text(self) -> bytes:
        """Return all metrics in the exposition format."""
        hits, self._hits = self._hits, {}
        for (tool, tier), count in hits.items():
            self._calls.labels(tool, tier, "hit").inc(count)
        charged, self._charged = self._charged, {}
        for tool, credits in charged.items():
            self._credits.labels(tool).inc(credits)
        messages = self.mcp_messages
        self._messages.labels("fast").inc(messages.taken - messages.by_sdk)
        self._messages.labels("sdk").inc(messages.by_sdk)
        messages.taken = messages.by_sdk = 0
        return generate_latest(self.registry)


def _samples(metric: Collector, name: str) -> Iterator[Sample]:
    """Yield the samples of a metric that have this name."""
    yield from (sample for family in metric.collect() for sample in family.samples if sample.name == name)


KEEP_H, WINDOW_H, RECENT = 48, 24, 20
OTHER = "other"
_FAMILIES = (
    ("gptbot", "GPTBot"), ("chatgpt-user", "ChatGPT-User"), ("oai-searchbot", "OAI-SearchBot"), ("openai", "OpenAI"),
    ("claudebot", "ClaudeBot"), ("claude-user", "Claude-User"), ("claude-code", "Claude Code"), ("claude", "Claude"),
    ("anthropic", "Anthropic"), ("perplexity", "PerplexityBot"), ("google-extended", "Google-Extended"),
    ("gemini", "Gemini"), ("bytespider", "Bytespider"), ("ccbot", "CCBot"), ("cohere", "Cohere"),
    ("mistral", "Mistral"),
    ("cursor", "Cursor"), ("vscode", "VS Code"), ("copilot", "Copilot"), ("langchain", "LangChain"),
    ("fastmcp", "FastMCP"), ("modelcontextprotocol", "MCP SDK"), ("mcp", "MCP client"), ("googlebot", "Googlebot"),
    ("bingbot", "Bingbot"), ("toolserver", "toolserver"), ("python-httpx", "python-httpx"),
    ("python-requests", "python-requests"), ("aiohttp", "aiohttp"), ("urllib", "python-urllib"), ("axios", "axios"),
    ("undici", "node"), ("node", "node"), ("go-http-client", "Go"), ("okhttp", "OkHttp"), ("java", "Java"),
    ("curl", "curl"), ("wget", "wget"), ("mozilla", "browser"),
)  # fmt: skip
_KNOWN = 2000  # User-Agents remembered with their family


class CountedCall(NamedTuple):
    """One of the last calls. `at` is rounded down to the minute."""

    endpoint: str
    agent: str
    at: datetime
    status: int
    tier: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls of the past 24 hours. `since` is when counting began, if that is less than a day ago."""

    total: int
    agents: dict[str, int]
    recent: list[CountedCall]
    since: datetime


class Usage:
    """Counts calls in memory; the owner stores and restores the hours, and adds those of other instances."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._hours: dict[int, dict[str, int]] = {}
        self._others: Mapping[tuple[int, str], int] = {}  # by hour and family, of other instances
        self._recent: deque[tuple[str, str, float, int, str]] = deque(maxlen=RECENT)
        self._families: dict[str, str] = {}
        self.began = now()

    def count(self, agent: str, endpoint: str, status: int, tier: str, at: float) -> None:
        """Count one call. `at` is in epoch seconds."""
        family = self._families.get(agent) or self._family(agent)
        number = int(at) // 3600
        hour = self._hours.get(number)
        if hour is None:
            hour = self._new_hour(number)
        hour[family] = hour.get(family, 0) + 1
        self._recent.append((endpoint, family, at, status, tier))

    def counted(self) -> Counted:
        """Return the calls of the past 24 hours to all instances, most frequent family first."""
        now = self._now()
        first = int(now.timestamp() // 3600) - WINDOW_H
        agents: dict[str, int] = {}
        for hour, family, hits in (*self.rows(), *((*key, hits) for key, hits in self._others.items())):
            if hour > first and hits > 0:
                agents[family] = agents.get(family, 0) + hits
        ordered = dict(sorted(agents.items(), key=lambda item: (-item[1], item[0])))
        since = max(self.began, now - timedelta(hours=WINDOW_H))
        recent = [
            CountedCall(endpoint, family, datetime.fromtimestamp(at - at % 60, UTC), status, tier)
            for endpoint, family, at, status, tier in reversed(self._recent)
        ]
        return Counted(sum(ordered.values()), ordered, recent, since)

    def rows(self) -> list[tuple[int, str, int]]:
        """Return this instance's counts as rows `(hour since the epoch, family, hits)` to store."""
        return [(hour, family, hits) for hour, families in self._hours.items() for family, hits in families.items()]

    def restore(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Add stored hours to the counts since the start."""
        for hour, family, hits in rows:
            families = self._hours.setdefault(hour, {})
            families[family] = families.get(family, 0) + hits
            self.began = min(self.began, datetime.fromtimestamp(hour * 3600, UTC))

    def list_hours(self) -> list[int]:
        """Return the hours of the past day and the current one, as numbers since the epoch."""
        last = int(self._now().timestamp() // 3600)
        return list(range(last - WINDOW_H, last + 1))

    def take_others(self, counted: Mapping[tuple[int, str], int]) -> None:
        """Set the counts of other instances by hour and family, replacing the previous ones."""
        self._others = counted

    def _new_hour(self, hour: int) -> dict[str, int]:
        for old in [h for h in self._hours if h <= hour - KEEP_H]:
            del self._hours[old]
        return self._hours.setdefault(hour, {})

    def _family(self, agent: str) -> str:
        lowered = agent.lower()
        family = next((name for mark, name in _FAMILIES if mark in lowered), OTHER)
        if len(self._families) < _KNOWN:
            self._families[agent] = family
        return family
