"""The dashboards of deploy/grafana: whole, about metrics that exist, and answered by a Prometheus that scrapes them."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.code import ROOT
from tests.deploy.pager import find_prometheus, watching
from tests.deploy.test_alarms import WELL, quiet
from toolserver.core.metrics import Metrics

FOLDER = ROOT / "deploy" / "grafana"
BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
METRIC = re.compile(r"\b(?:toolserver|process)_\w+")
SUFFIXES = re.compile(r"_(bucket|sum|count|created)$")


def busy_metrics() -> Metrics:
    """The metrics of an instance that has every part."""
    metrics = Metrics()
    quiet(metrics)
    for state in WELL:
        state(metrics)
    metrics.settled("premium_briefing", 1, None)
    metrics.follow_budgets(lambda: [("a", "a.example", 10, 5, 5)])
    metrics.follow_announcements(lambda: [("A.one", "sunset", "2027", 0.0)])
    return metrics


def queries(board: dict[str, Any]) -> list[str]:
    return [target["expr"].replace("$instance", ".*") for panel in board["panels"] for target in panel["targets"]]


def test_there_are_four_and_each_panel_is_whole():
    assert list(BOARDS) == ["money", "service", "sources", "webhooks"]
    assert len({board["uid"] for board in BOARDS.values()}) == 4
    for board in BOARDS.values():
        assert board["schemaVersion"] >= 36
        assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "instance"]
        places = set()
        for panel in board["panels"]:
            assert panel["type"] in ("timeseries", "stat", "table")
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["title"]
            assert all(target["expr"] and target["legendFormat"] for target in panel["targets"])
            places.add((panel["gridPos"]["x"], panel["gridPos"]["y"]))
        assert len(places) == len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


@pytest.mark.parametrize("name", BOARDS)
def test_every_query_names_metrics_that_the_service_writes(name):
    written = {line.split()[2] for line in busy_metrics().text().decode().splitlines() if line.startswith("# TYPE")}
    follows = {"toolserver_ledger_up", "toolserver_ledger_outbox"}
    named = {SUFFIXES.sub("", metric) for query in queries(BOARDS[name]) for metric in METRIC.findall(query)}
    assert {metric for metric in named if metric not in written | follows} == set()


class Exposition(BaseHTTPRequestHandler):
    text = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.mark.live
def test_a_prometheus_that_scrapes_the_service_answers_every_query_and_pages(tmp_path: Path):
    """With the shipped rules. Rates of what has not moved are empty or no number, and still answers."""
    if find_prometheus() is None:
        pytest.skip("prometheus is not here")
    Exposition.text = busy_metrics().text() + b'toolserver_calls_total{tool="a",tier="free",outcome="x"} 1\n'
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exposition)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with watching(tmp_path, [f"127.0.0.1:{server.server_port}"]) as pager:
            until = time.monotonic() + 60
            while "ToolserverUpstreamAnnounces" not in (firing := pager.list_firing()):
                assert time.monotonic() < until, pager.log.read_text()
                time.sleep(0.2)
            assert firing == {"ToolserverUpstreamAnnounces"}  # the only one here that does not wait
            assert len(pager.ask("targets")["activeTargets"]) == 1
            for board in BOARDS.values():
                for query in queries(board):
                    answer = pager.ask("query", query=query)
                    gauges = not re.search(r"rate\(|deriv\(|increase\(|ledger_|closed_|refused_", query)
                    assert answer["result"] or not gauges, query
    finally:
        server.shutdown()
        server.server_close()
