"""`python -m bench [--rows 1,9] [--runs 3] [--save FILE.json]`: measure the rows of docs/performance.md.

The worst is shown first. The exit code is 1 when a bar is missed or not judged; of several runs, when they differ.
`python -m bench.figures FILE.json` updates the page and its pictures.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.frameworks import PEERS as PYTHON
from bench.judge import ROWS, Bar, Effort, Verdict, as_json, judge_rows, show_table, show_verdict
from bench.mcp_peers import MODULES
from bench.mcp_peers import PYTHON as FIRST_GENERATION
from bench.processes import allow_descriptors
from bench.repeat import repeat, show_runs
from toolserver import API_VERSION

BESIDE = ("fastapi", "litestar")
SERVERS = ("hypercorn", "uvicorn")
PEERS = ("hypercorn", "uvicorn", "uvloop", "httptools", "mcp", "fastmcp", "starlette", "aiosqlite")


def versions() -> dict[str, str]:
    """Return the versions of the compared software."""
    found = {"toolserver": API_VERSION, "python": platform.python_version()}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found | peers_beside()


def peers_beside() -> dict[str, str]:
    """Return the versions of the peers that `make peers` installed beside our own environment."""
    script = "from importlib.metadata import version; print(*(version(n) for n in {names!r}))"
    found: dict[str, str] = {}
    for interpreter, names in ((PYTHON, BESIDE), (FIRST_GENERATION, ("mcpo", "fastapi-mcp"))):
        if interpreter.exists():
            command = [str(interpreter), "-c", script.format(names=names)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found |= dict(zip(names, done.stdout.split(), strict=True))
    package = MODULES / "@modelcontextprotocol" / "server" / "package.json"
    if package.exists():
        found["TypeScript SDK"] = json.loads(package.read_text(encoding="utf-8"))["version"]
    return found


def machine() -> str:
    """Describe the processor and the number of cores that this process may use."""
    cpu = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    names = [line.partition(":")[2].strip() for line in cpu.splitlines() if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else platform.machine()}"


def read_rows(text: str) -> list[int]:
    """Return row numbers from a text such as `1,9,11-14`. Raises ValueError for any other text."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    if unknown := set(found) - ROWS.keys():
        raise ValueError(f"there is no row {min(unknown)}")
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=read_rows, default=list(ROWS), help="such as 1,9,11-14; all without it")
    parser.add_argument("--requests", type=int, default=Effort.requests, help="of a half")
    parser.add_argument("--pairs", type=int, default=Effort.pairs, help="of each comparison")
    parser.add_argument(
        "--seconds", type=float, default=Effort.seconds, help="of a half of what is measured for a time"
    )
    parser.add_argument("--runs", type=int, default=1, help="run it all as often, and compare the runs")
    parser.add_argument("--server", choices=SERVERS, action="append")
    parser.add_argument("--save", type=Path, help="keep all figures in this file")
    return parser.parse_args(arguments)


def run_once(rows: Collection[int], effort: Effort) -> tuple[Verdict, dict[int, str], bool]:
    """Measure and print. Return the results, why rows were left out, and whether all bars are reached."""
    found, left_out = judge_rows(rows, effort)
    for table in found.tables:
        show_table(table)
    print("\n" + ", ".join(f"{name} {number}" for name, number in versions().items()) + f"; {machine()}")
    all_reached = show_verdict(found.bars, left_out)
    sys.stdout.flush()
    return found, left_out, all_reached and not found.broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and save. Return 1 when a bar is missed, a part failed, or the runs differ."""
    asked = parse(arguments)
    allow_descriptors()
    effort = Effort(asked.requests, asked.pairs, tuple(asked.server or SERVERS), asked.seconds)
    saved: list[tuple[Verdict, dict[int, str]]] = []

    def run(rows: Collection[int]) -> list[Bar]:
        verdict, left_out, _ = run_once(rows, effort)
        saved.append((verdict, left_out))
        return verdict.bars

    if asked.runs == 1:
        found, left_out, is_well = run_once(asked.rows, effort)
    else:
        is_well = show_runs(repeat(run, asked.rows, asked.runs), asked.rows)
        found, left_out = saved[asked.runs - 1]  # the last complete one
    if asked.save:
        about: dict[str, Any] = {"at": time.strftime("%Y-%m-%d", time.gmtime()), "machine": machine()}
        about |= {"versions": versions(), "left_out": left_out}
        about["command"] = f"python -m bench --requests {asked.requests} --pairs {asked.pairs}"
        asked.save.write_text(json.dumps(about | as_json(found), indent=1) + "\n", encoding="utf-8")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
