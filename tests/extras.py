"""Name what is not on every machine and can be asked for: a run without it reports it, a run that asks for it needs it.

| variable | tests of |
|---|---|
| `SAMPLES=folder` | recorded bodies of upstreams; a folder `shared/upstreams` beside the checkout is found by itself |
| `HOSTS=1` | real hosts of models, from the npm registry: one question each |
| `CONVERSATIONS=1` | the whole conversation and every refusal in each of them: `make hosts` |
| `REHEARSAL=1` | live mode in a network namespace of its own |

What the tests of an extra prove is also proved by small means of our own, in tests that always run.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import pytest

EXTRAS = {
    "SAMPLES": "recorded upstream bodies: SAMPLES=folder",
    "HOSTS": "real hosts from the npm registry: HOSTS=1",
    "CONVERSATIONS": "whole conversations in real hosts: make hosts",
    "REHEARSAL": "live mode in a network namespace: REHEARSAL=1",
}
ROOT = Path(__file__).resolve().parents[1]
NEIGHBOUR = ROOT.parent / "shared" / "upstreams"
PREFIX = "extra, "


def is_asked_for(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def without_extra(name: str) -> NoReturn:
    """Skip a test for want of an extra, or fail where the extra was asked for and what it needs is missing."""
    if is_asked_for(name):
        pytest.fail(f"{name} is set, but what it needs is missing ({EXTRAS[name]})", pytrace=False)
    pytest.skip(PREFIX + EXTRAS[name])


def find_samples() -> Path:
    """Return the folder of recorded bodies. Skips the test where there is none."""
    folder = ROOT / os.environ["SAMPLES"] if is_asked_for("SAMPLES") else NEIGHBOUR
    return folder if folder.is_dir() else without_extra("SAMPLES")


def skip_unless_asked_for(item: pytest.Item) -> None:
    """A test marked `extra("HOSTS")` runs where the extra is asked for, and is reported elsewhere."""
    for marker in item.iter_markers("extra"):
        if marker.args[0] not in EXTRAS:
            raise pytest.UsageError(f"{item.nodeid}: there is no extra {marker.args[0]!r}, only {', '.join(EXTRAS)}")
        if not is_asked_for(marker.args[0]):
            pytest.skip(PREFIX + EXTRAS[marker.args[0]])


def reason_of(report: Any) -> str:
    """Return why a test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(reason).removeprefix("Skipped: ")


def skips_that_count(reports: Iterable[Any]) -> list[Any]:
    """Return the skipped tests that are no extras: where everything is required, each of them is a failure."""
    return [report for report in reports if not reason_of(report).startswith(PREFIX)]
