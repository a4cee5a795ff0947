"""Each alarm of deploy/prometheus is provoked with the metrics that the service really writes, and is quiet otherwise.

promtool (Debian: prometheus) judges: it is given what /metrics says before and after something happened, as series.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from tests.architecture.code import ROOT
from toolserver.clock import ClockSkew, ManualClock
from toolserver.core.metrics import ConnectionCounts, Metrics
from toolserver.money.purchases.credit_sales import ChainServers
from toolserver.serving.instance_watch import InstanceWatch, Measured
from toolserver.settings import Settings
from toolserver.sql.group_commit import StoreLoad

RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
STEPS = 200  # minutes that a state lasts in a test: longer than any `for`
pytestmark = pytest.mark.live


def quiet(metrics: Metrics) -> None:
    """An hour in which all is well."""
    for _ in range(100):
        metrics.hit("btc_price", "free")
        metrics.called("btc_price", "free", "ok", 0.01)
    metrics.called("btc_price", "free", "stale", 0.01)
    metrics.fetched("Coinbase.spot", "ok", 0.1, True)
    metrics.attempted("ok")
    metrics.settled("premium_briefing", 3, "stale_data")


def fail_inside(metrics: Metrics) -> None:
    metrics.called("weather", "free", "internal_error", 0.01)


def lose_source(metrics: Metrics) -> None:
    metrics.fetched("Coinbase.spot", "http_503", 0.1, True)


def answer_stale(metrics: Metrics) -> None:
    for _ in range(30):
        metrics.called("btc_price", "free", "stale", 0.01)


def give_back(metrics: Metrics) -> None:
    metrics.settled("premium_briefing", 3000, "5xx")


def fail_webhooks(metrics: Metrics) -> None:
    for _ in range(10):
        metrics.attempted("timeout")


class Watch(InstanceWatch):
    """The watch of an instance on a disk of its own, of which so large a part is free."""

    free = 0.5

    def _measure_disk(self):
        yield GaugeMetricFamily("toolserver_disk_free_bytes", "", self.free * 1e12)
        yield GaugeMetricFamily("toolserver_disk_bytes", "", 1e12)


class Store:
    """A database with a load."""

    def __init__(self, load: StoreLoad) -> None:
        self.load = load

    def measure(self) -> StoreLoad:
        return self.load


CALM = StoreLoad(connections=3, waiting=0, owed=0, groups=60, busy_s=0.3, retries=0)


NOTHING_WAITS = Measured()


def watch(
    metrics: Metrics,
    *lost: str,
    free: float = 0.5,
    skew_s: float = 0.0,
    backlog: Measured = NOTHING_WAITS,
    load: StoreLoad = CALM,
    failing: int = 0,
) -> InstanceWatch:
    """Register the watch of an instance in this state, and return it."""
    payments = SimpleNamespace(count_servers=lambda: ChainServers(3, 3 - failing, failing))
    money = SimpleNamespace(payments=payments, file=Store(load))
    skew, clock = ClockSkew(), ManualClock(datetime(2027, 1, 15, tzinfo=UTC))
    skew.seconds = skew_s
    watch = Watch(Settings(), None, money, skew, clock)  # type: ignore[arg-type]
    watch.free, watch.measured = free, replace(backlog, losses=frozenset(lost))
    metrics.register(watch)
    return watch


def fill_connections(metrics: Metrics) -> None:
    metrics.follow_connections(lambda: ConnectionCounts(100, 9, {"waiting": 80, "answering": 15}, {}))


def refuse_connections(metrics: Metrics) -> None:
    metrics.follow_connections(lambda: ConnectionCounts(100, 9, {"waiting": 8}, {"per_client": 600}))


def open_files(metrics: Metrics) -> None:
    metrics.registry.unregister(metrics.process)
    Gauge("process_open_fds", "", registry=metrics.registry).set(990)
    Gauge("process_max_fds", "", registry=metrics.registry).set(1000)


PROVOKED: dict[str, Callable[[Metrics], object]] = {
    "ToolserverFailsInside": fail_inside,
    "ToolserverSourceDown": lose_source,
    "ToolserverAnswersStale": answer_stale,
    "ToolserverHostRefuses": lambda m: m.follow_closed(lambda: [("www.reddit.com", 403, 3600.0)], lambda: []),
    "ToolserverUpstreamAnnounces": lambda m: m.follow_announcements(lambda: [("ECB.rates", "sunset", "2027", 0.0)]),
    "ToolserverPaymentsHang": lambda m: m.watch_payments(lambda: (1, 1000.0, 0)),
    "ToolserverPaymentsInReview": lambda m: m.watch_payments(lambda: (0, 0.0, 2)),
    "ToolserverChargesReleased": give_back,
    "ToolserverWebhooksFail": fail_webhooks,
    "ToolserverRedisLost": lambda m: m.follow_shared_memory(lambda: (False, 1, 0)),
    "ToolserverLedgerLost": lambda m: watch(m, "ledger"),
    "ToolserverDiskFilling": lambda m: watch(m, free=0.09),
    "ToolserverDiskFull": lambda m: watch(m, "disk"),
    "ToolserverChainLost": lambda m: watch(m, "chain"),
    "ToolserverChainServersFail": lambda m: watch(m, failing=1),
    "ToolserverClockOff": lambda m: watch(m, skew_s=-6),
    "ToolserverDatabaseSlow": lambda m: watch(m, load=CALM._replace(busy_s=18.0)),
    "ToolserverDatabaseRetries": lambda m: watch(m, load=CALM._replace(retries=120)),
    "ToolserverDatabaseWaits": lambda m: watch(m, load=CALM._replace(waiting=501)),
    "ToolserverWebhooksLate": lambda m: watch(m, backlog=Measured(webhooks_late_s=301)),
    "ToolserverLogWaits": lambda m: watch(m, backlog=Measured(log_waiting=7)),
    "ToolserverConnectionsFull": fill_connections,
    "ToolserverConnectionsRefused": refuse_connections,
    "ToolserverFilesRunOut": open_files,
    "ToolserverLedgerAway": lambda m: m.follow(lambda: ("open", 1, 5.0, 0, None)),
    "ToolserverLedgerRejects": lambda m: m.follow(lambda: ("closed", 0, 0.0, 0, 401)),
}
WELL: list[Callable[[Metrics], object]] = [
    lambda m: m.watch_payments(lambda: (3, 20.0, 0)),
    lambda m: m.follow_shared_memory(lambda: (True, 1, 0)),
    lambda m: m.follow(lambda: ("closed", 1, 0.0, 0, None)),
    lambda m: m.follow_closed(lambda: [], lambda: []),
    watch,
    lambda m: m.follow_connections(lambda: ConnectionCounts(100, 3, {"waiting": 8}, {"deadline": 1})),
]
APART = {"ToolserverDown", "ToolserverDiskFullSoon", "ToolserverVersionsDiffer"}  # with series of their own


def series(before: Metrics, after: Metrics) -> list[dict[str, str]]:
    """What a server would have scraped: `before` for an hour, then every minute once more of what happened since."""
    first = dict(samples(before))
    found = [{"series": 'up{job="toolserver", instance="a"}', "values": f"1x{60 + STEPS}"}]
    for name, value in samples(after):
        start = first.get(name, 0.0 if is_counter(name) else value)
        if is_counter(name):
            step = value - start
            found.append({"series": name, "values": f"{start:g}x60 {start + step:g}+{step:g}x{STEPS}"})
        else:
            found.append({"series": name, "values": f"{start:g}x60 {value:g}x{STEPS}"})
    return found


def is_counter(name: str) -> bool:
    return re.match(r"\w+_(total|count|sum|bucket)\b", name) is not None


def samples(metrics: Metrics) -> list[tuple[str, float]]:
    found = []
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            labels = {"job": "toolserver", "instance": "a", **sample.labels}
            inside = ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
            found.append((f"{sample.name}{{{inside}}}", sample.value))
    return found


def judge(folder: Path, given: list[dict[str, str]], alarms: dict[str, bool]) -> None:
    """Let promtool say which alarms stand at the end; raises AssertionError if they are not the expected ones."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here (Debian: prometheus)")
    expr = 'count by (alertname) (ALERTS{alertstate="firing"})'
    firing = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alarms) if alarms[name]]
    case: dict[str, Any] = {
        "interval": "1m",
        "input_series": given,
        "promql_expr_test": [{"expr": expr, "eval_time": f"{55 + STEPS}m", "exp_samples": firing}],
    }
    test = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [case]}
    path = folder / "case.yml"
    path.write_text(json.dumps(test))  # JSON is YAML
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def listed_alarms() -> list[str]:
    return re.findall(r"- alert: (\w+)", RULES.read_text())


def test_every_alarm_is_provoked_here():
    assert PROVOKED.keys() | APART == set(listed_alarms())


def test_every_alarm_has_a_section_that_says_what_to_do():
    text = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    rules = re.findall(
        r"alert: (\w+)\n.*?for: (\w+)\n.*?severity: (\w+).*?runbook_url: '(\S+)'", RULES.read_text(), re.DOTALL
    )
    assert [name for name, *_ in rules] == listed_alarms() == list(sections)
    for name, lasts, severity, url in rules:
        begins = "Fires at once" if lasts == "0m" else f"Fires after {lasts}"
        assert sections[name].strip().startswith(f"{begins} ({severity})"), name
        assert "- **Do**: " in sections[name]
        assert url == f"docs/alerts.md#{name.lower()}"


@pytest.mark.parametrize("name", PROVOKED)
def test_what_an_alarm_is_for_sets_it_off_and_no_other(tmp_path, name):
    before, after = Metrics(), Metrics()
    for metrics in (before, after):
        quiet(metrics)
    PROVOKED[name](after)

    judge(tmp_path, series(before, after), {name: True})


def test_a_quiet_service_sets_off_none(tmp_path):
    before, after = Metrics(), Metrics()
    for metrics in (before, after):
        quiet(metrics)
        for state in WELL:
            state(metrics)
    quiet(after)

    judge(tmp_path, series(before, after), {})


def test_a_process_that_is_gone_sets_off_its_alarm(tmp_path):
    judge(
        tmp_path,
        [{"series": 'up{job="toolserver", instance="a"}', "values": f"1x60 0x{STEPS}"}],
        {"ToolserverDown": True},
    )


def test_a_disk_that_will_be_full_in_three_days_sets_off_its_alarm(tmp_path):
    where = 'job="toolserver", instance="a"'
    given = [
        {"series": f"toolserver_disk_bytes{{{where}}}", "values": f"100000x{60 + STEPS}"},
        {"series": f"toolserver_disk_free_bytes{{{where}}}", "values": f"40000-10x{60 + STEPS}"},
    ]
    judge(tmp_path, given, {"ToolserverDiskFullSoon": True})


def test_versions_side_by_side_set_off_their_alarm(tmp_path):
    builds = [f'toolserver_build_info{{job="toolserver", instance="{n}", version="{n}.0"}}' for n in (1, 2)]
    given = [{"series": build, "values": f"1x{60 + STEPS}"} for build in builds]
    judge(tmp_path, given, {"ToolserverVersionsDiffer": True})
