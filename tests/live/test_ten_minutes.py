"""docs/ten-minutes.md, followed to the letter: its commands run one after the other, as a newcomer pastes them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.processes import ROOT, Program, environment, started
from tests.ports import reserve_port

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

GUIDE = ROOT / "docs" / "ten-minutes.md"
NOT_HERE = ("make demo", ". .venv/bin/activate", "export TOKEN=", "claude mcp add")  # done by the test, or another's
STEPS = ["Start", "Look", "Connect", "Three tools", "Buy", "A paid answer", "Verify it", "A webhook"]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Program]:
    """A newcomer's own: purchases of other tests let the clock of a shared one run ahead, by more than the five minutes
    that receivers of webhooks allow.
    """
    with started("demo", folder=tmp_path) as program:
        yield program


def script(demo: Program) -> str:
    """Every shell block of the guide, for a demo and a receiver on other ports."""
    text = GUIDE.read_text(encoding="utf-8")
    assert re.findall(r"^## \d\. (.*)$", text, re.MULTILINE) == STEPS
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith(NOT_HERE)]
    left_out = sum(len(block.splitlines()) for block in blocks) - len(lines)
    assert left_out == len(NOT_HERE)
    here = demo.url.removeprefix("http://")
    return (
        "\n".join(lines)
        .replace("localhost:8080", here)
        .replace(":5005", f":{(port := reserve_port())}")
        .replace("webhooks listen", f"webhooks listen --port {port}")
    )


def test_every_command_of_the_guide_does_what_it_says(demo: Program, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "toolserver"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolserver "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    given = {"TOKEN": demo.ready["token"], "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(demo)],
        capture_output=True,
        text=True,
        timeout=150,
        env=environment(given),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    for endpoint in ("earthquake", "btc-price", "launches"):
        assert f'"endpoint":"{endpoint}"' in done.stdout
    assert re.search(r"x-credits-remaining: \d+", done.stdout)
    assert '"valid": true' in done.stdout
    assert '"body": true' in done.stdout
    assert "signature valid" in done.stdout
    assert json.loads((tmp_path / "answer.json").read_text())["sections"]
