"""Run every command block of docs/operators-month.md in order, in one shell, and read what the books say afterwards."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.live.processes import ROOT, environment
from tests.ports import reserve_port

GUIDE = ROOT / "docs" / "operators-month.md"
SECTIONS = [
    "Start", "Payments by x402", "Payments of every other kind", "Calls", "What needs a person", "Collect the money",
    "A refund", "A lost token", "The books", "Close the month", "Verify it elsewhere",
]  # fmt: skip
KILLED_BEFORE = "## 5."  # the service; the one command that moves money is killed where it stands
START = """
start() {
  rm -f ready.json
  toolserver demo --data-dir month --port PORT --no-wait --ready-json > ready.json 2>> demo.log &
  echo $! > demo.pid
  until [ -s ready.json ]; do kill -0 "$(cat demo.pid)"; sleep 0.2; done
  . month/demo.env
}
kill_service() { kill -9 "$(cat demo.pid)"; wait "$(cat demo.pid)" 2> /dev/null || true; start; }
start
"""
END = """
toolserver books month "$month" --json > month.json
toolserver books check --json > check.json
toolserver books chain --json > chain.json
field token < month/new-token.json | toolserver ledger balance - --json > new.json
"""


class Walk:
    """One walk through the page in a folder. `twice` runs each line with a command of the operator a second time;
    `killed` kills the service, and the command that collects the money, in the middle.
    """

    def __init__(self, folder: Path, *, twice: bool = False, killed: bool = False) -> None:
        self.folder, self.twice, self.killed = folder, twice, killed

    def run(self, *, within_s: float, show: bool = False) -> None:
        """Run the page. Raises AssertionError with the end of what it printed if a command fails."""
        bin_folder = self.folder / "bin"
        bin_folder.mkdir(parents=True)
        for name, words in {"toolserver": "-m toolserver", "python": "", "python3": ""}.items():
            command = bin_folder / name
            command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
            command.chmod(0o755)
        script = self.folder / "walk.sh"
        script.write_text(self.compose(), encoding="utf-8")
        given = environment({"PATH": f"{bin_folder}:{os.environ['PATH']}"})
        out = None if show else subprocess.PIPE
        words = ["bash", "-veuo", "pipefail", str(script)]
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, text=True, env=given, cwd=self.folder)
        try:
            said, _ = process.communicate(timeout=within_s)
            assert process.returncode == 0, (said or "")[-4000:]
            assert "Traceback" not in (said or ""), said
        finally:
            process.kill()
            process.wait()
            self._stop_service()

    def compose(self) -> str:
        """Return the page as a script. Its first block starts the demo, which the script does on a port of its own."""
        text = GUIDE.read_text(encoding="utf-8")
        assert re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE) == SECTIONS
        before, after = text.split(KILLED_BEFORE)
        first, *blocks = _find_blocks(before)
        assert first == "toolserver demo --data-dir month\n"
        lines = [line for block in blocks for line in _split_commands(block)]
        lines += ["kill_service"] if self.killed else []
        for line in (line for block in _find_blocks(after) for line in _split_commands(block)):
            if self.killed and line.startswith("toolserver sweep submit"):
                lines.append(f"timeout -s KILL 2 {line} || echo killed")
            lines.append(line)
            if self.twice and "toolserver" in line and not line.startswith("until"):
                lines.append(f"{line} || echo refused")
        note = "toolserver books month --json > first.json"
        place = next(number for number, line in enumerate(lines) if line.startswith("month="))
        lines.insert(place, note)
        return START.replace("PORT", str(reserve_port())) + "\n".join(lines) + END

    def read(self, name: str) -> dict[str, Any]:
        """Return what one of the last commands printed: month, first, check, chain or new."""
        found: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return found

    def _stop_service(self) -> None:
        file = self.folder / "demo.pid"
        if file.exists():
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended


def _find_blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _split_commands(block: str) -> list[str]:
    """Return the commands of a block: its lines, and a text for `cat` as one."""
    return [match[0].rstrip("\n") for match in re.finditer(r"cat > \S+ <<'END'\n(?s:.*?)\nEND\n|[^\n]*\n", block)]


def check(walk: Walk) -> None:
    """Compare what the books say with what the page pays, to the credit and to 0.000001 USDC."""
    credits, usdc = walk.read("month")["credits"], walk.read("month")["usdc"]
    wanted = {"sold_by_transfer": 250 + 100 + 150 + 350 + 200 + 250, "sold_by_x402": 0, "refunded": 100, "used": 3}
    wanted |= {"owed_before": 600, "owed": 600 + 1300 - 100 - 3, "granted": 0, "taken_back": 0, "other": 0}
    assert {name: credits[name] for name in wanted} == wanted
    paid = {way: (usdc[way]["payments"], usdc[way]["usd"]) for way in ("by_transfer", "unapplied", "paid_back")}
    assert paid == {"by_transfer": (6, "26.000000"), "unapplied": (1, "0.500000"), "paid_back": (1, "2.000000")}
    first = walk.read("first")["usdc"]
    by_x402 = {way: (first[way]["payments"], first[way]["usd"]) for way in ("by_x402_topup", "by_x402_call")}
    assert by_x402 == {"by_x402_topup": (1, "2.000000"), "by_x402_call": (1, "0.020000")}
    states = walk.read("chain")["states"]
    sums = {state: (each["transfers"], each["received_usd"], each["sent_usd"]) for state, each in states.items()}
    assert sums == {
        "credited": (8, "28.020000", "0.000000"),
        "short": (1, "0.500000", "0.000000"),
        "swept": (5, "26.000000", "26.000000"),
        "refunded": (1, "0.000000", "2.000000"),
    }
    chain = walk.read("chain")
    assert (chain["booked_usd"], chain["held_usd"], chain["agrees"]) == ("26.520000", "26.520000", True)
    compared = {each["name"]: each["compared"] for each in walk.read("check")["checks"]}
    assert walk.read("check")["ok"]
    assert compared["months"] == 2
    assert walk.read("new")["credits"] == 350, "a new token that was written down stays so"
