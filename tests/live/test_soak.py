"""The short form of `python -m bench.soak`: a simulated day in half a minute. That nothing grows takes the long one."""

import json
import subprocess
import sys

import pytest

from tests.live.processes import ROOT, environment

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

MINUTES = 0.5


def test_after_a_day_of_faults_the_books_agree_and_every_receipt_verifies(tmp_path):
    kept = tmp_path / "day.json"
    words = (sys.executable, "-m", "bench.soak", "--minutes", str(MINUTES), "--save", str(kept))
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment({}), check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]

    day = json.loads(kept.read_text())
    assert day["found"] == []
    assert all(day["calls"][name] > 3 for name in ("free_rest", "free_mcp", "paid_rest", "paid_mcp"))
    assert day["receipts"] > 5
    assert day["deliveries"] > 0
    assert day["samples"]
