"""Numbers for operators, in Prometheus' words."""

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
        self._children: dict[tuple[str, str], object] = {}
        self._hits: dict[tuple[str, str], int] = {}

    def hit(self, tool: str, tier: str) -> None:
        """A call answered from the cache: counted cheaply, folded in when metrics are read."""
        key = (tool, tier)
        self._hits[key] = self._hits.get(key, 0) + 1

    def called(self, tool: str, tier: str, outcome: str, seconds: float) -> None:
        self._calls.labels(tool, tier, outcome).inc()
        self._seconds.labels(tool).observe(seconds)

    def fetched(self, source: str, outcome: str, seconds: float) -> None:
        self._fetches.labels(source, outcome).inc()
        self._fetch_seconds.labels(source).observe(seconds)
        self._up.labels(source).set(outcome == "ok")

    def settled(self, tool: str, credits: int, reason: str | None) -> None:
        if reason is None:
            self._credits.labels(tool).inc(credits)
        else:
            self._released.labels(reason).inc(credits)

    def text(self) -> bytes:
        """The exposition format."""
        hits, self._hits = self._hits, {}
        for (tool, tier), count in hits.items():
            self._calls.labels(tool, tier, "hit").inc(count)
        return generate_latest(self.registry)
