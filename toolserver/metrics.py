"""Numbers for operators, in Prometheus' words."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_LATENCY = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class Metrics:
    """One instance a service; nothing global, so tests and several apps in one process do not mix."""

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
        self._credits = Counter("toolserver_credits_charged_total", "Credits charged", ["tool"], registry=self.registry)
        self._released = Counter(
            "toolserver_credits_released_total", "Credits released, by reason", ["reason"], registry=self.registry
        )
        self._up = Gauge(
            "toolserver_source_up", "1 when the last exchange was good", ["source"], registry=self.registry
        )
        self._counted: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        self._hits: dict[tuple[str, str], int] = {}
        self._charged: dict[str, int] = {}

    def follow(self, health: Callable[[], tuple[str, int, float, int]]) -> None:
        """Also tell how it goes with the ledger of a sister service: its state, and how often it was away."""

        def gauge(name: str, about: str, value: Callable[[], float]) -> None:
            Gauge(name, about, registry=self.registry).set_function(value)

        gauge("toolserver_ledger_up", "1 while the ledger that is followed answers", lambda: health()[0] == "closed")
        gauge("toolserver_ledger_away", "How often it was given up", lambda: health()[1])
        gauge("toolserver_ledger_outbox", "Releases that it has not been told of yet", lambda: health()[3])

    def hit(self, tool: str, tier: str) -> None:
        """A call answered from the cache: counted cheaply, folded in when metrics are read."""
        key = (tool, tier)
        self._hits[key] = self._hits.get(key, 0) + 1

    def called(self, tool: str, tier: str, outcome: str, seconds: float) -> None:
        key = (tool, tier, outcome)
        kept = self._counted.get(key)
        if kept is None:  # to find a labelled child takes longer than to count
            kept = self._counted[key] = self._calls.labels(*key), self._seconds.labels(tool)
        kept[0].inc()
        kept[1].observe(seconds)

    def fetched(self, source: str, outcome: str, seconds: float) -> None:
        self._fetches.labels(source, outcome).inc()
        self._fetch_seconds.labels(source).observe(seconds)
        self._up.labels(source).set(outcome == "ok")

    def settled(self, tool: str, credits: int, reason: str | None) -> None:
        if reason is None:
            self._charged[tool] = self._charged.get(tool, 0) + credits
        else:
            self._released.labels(reason).inc(credits)

    def text(self) -> bytes:
        """The exposition format."""
        hits, self._hits = self._hits, {}
        for (tool, tier), count in hits.items():
            self._calls.labels(tool, tier, "hit").inc(count)
        charged, self._charged = self._charged, {}
        for tool, credits in charged.items():
            self._credits.labels(tool).inc(credits)
        return generate_latest(self.registry)
