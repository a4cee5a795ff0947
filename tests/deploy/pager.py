"""A real Prometheus with the shipped configuration and rules, which scrapes instances and says which alerts fire."""

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.architecture.code import ROOT
from tests.ports import reserve_port

FOLDER = ROOT / "deploy" / "prometheus"
UNITS = {"s": 1, "m": 60, "h": 3600}
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Pager:
    """A running Prometheus on 127.0.0.1."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, path: str, **parameters: str) -> Any:
        """The `data` of an answer of its API. Raises OSError."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def list_firing(self) -> set[str]:
        """The names of the alerts that fire now; none before it listens."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            alerts = self.ask("alerts")["alerts"]
        except OSError:
            return set()
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def find_prometheus() -> str | None:
    return shutil.which("prometheus")


@contextmanager
def watching(folder: Path, targets: Sequence[str], *, sooner: int = 1) -> Iterator[Pager]:
    """Run Prometheus on these targets (host and port) until the block ends, scraping every second.

    With `sooner`, each `for` of the rules is so many times shorter; expressions are as they are shipped.
    """
    program = find_prometheus()
    assert program is not None, "prometheus is not installed"
    folder.mkdir(exist_ok=True)
    (folder / "rules.yml").write_text(shorten((FOLDER / "rules.yml").read_text(), sooner))
    config, port = (FOLDER / "prometheus.yml").read_text(), reserve_port()
    changes = {
        '"127.0.0.1:9464"': ", ".join(f'"{target}"' for target in targets),
        "scrape_interval: 15s": "scrape_interval: 1s\n  evaluation_interval: 1s",
    }
    for old, new in changes.items():
        assert old in config
        config = config.replace(old, new)
    (folder / "prometheus.yml").write_text(config)
    own = [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        words = [program, f"--config.file={folder / 'prometheus.yml'}", *own]
        process = subprocess.Popen(words, stdout=output, stderr=output)
    pager = Pager(port, process, log)
    try:
        wait_until_ready(pager)
        yield pager
    finally:
        process.kill()
        process.wait()


def shorten(rules: str, sooner: int) -> str:
    """Return the rules with each `for` divided, but not below a second."""

    def divide(found: re.Match[str]) -> str:
        seconds = int(found[1]) * UNITS[found[2]]
        return f"for: {max(1, seconds // sooner)}s" if seconds else "for: 0s"

    return rules if sooner == 1 else re.sub(r"\bfor: (\d+)([smh])\b", divide, rules)


def wait_until_ready(pager: Pager) -> None:
    until = time.monotonic() + START_S
    while True:
        assert pager.process.poll() is None, pager.log.read_text()
        assert time.monotonic() < until, pager.log.read_text()
        try:
            pager.ask("targets")
            return
        except OSError:
            time.sleep(0.2)
