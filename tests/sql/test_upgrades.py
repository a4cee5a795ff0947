"""A few upgrades of old ledgers are killed; `python -m tests.sql.upgrades` kills two hundred."""

import json
import subprocess
import sys

import pytest

from tests.postgres import server_url
from tests.size import sized
from tests.sql.upgrades.matrix import VERSIONS

pytestmark = [pytest.mark.live, pytest.mark.never_forgiven]


@pytest.mark.parametrize("engine", ["file", "server"])
def test_every_start_after_a_killed_upgrade_is_ready_and_has_all_money(engine):
    if engine == "server":
        server_url()  # skips where there is none
    kills = sized(6, fast=6, long=100)
    words = [sys.executable, "-m", "tests.sql.upgrades", "--kills", str(kills), "--engine", engine]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=kills * 30)
    tally = json.loads(ended.stdout)
    assert tally["wrong"] == [], ended.stderr
    assert tally["kills"] >= kills
    assert set(tally["by"]) == {f"{engine} {version}" for version in VERSIONS}
