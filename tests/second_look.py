"""`python -m tests.second_look [PYTEST ARGUMENTS]`: run the tests, and look a second time at those that failed.

A test that failed runs again, alone, in a fresh process, with the seed, the example database and the arguments of the
run, twice at most. One that then passes is *flaky*: it is listed with its first failure, and so in `flaky-tests.json`.
The run passes when every test passed or is flaky, and at most three are. A failure counts at once when the test is of
those that `tests.outcomes` never forgives, or was flaky before in the last ten runs with these arguments.

SEED=number repeats a run with its examples and its order of sets, WORKERS=number sets the number of test processes.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.outcomes import FILE
from tests.size import EVERYTHING

ROOT = Path(__file__).resolve().parent.parent
REPORT = Path("flaky-tests.json")
MOST_FLAKY = 3
LOOKS = 2
MOST_LOOKED_AT = 12  # a run with more failures is broken, whatever they do later
RUNS_KEPT = 10
LOOK_S = 600.0
VALUED = frozenset({"-k", "-m", "-n", "-p", "-c", "-o", "-W"})


@dataclass
class Verdict:
    """What is said of a run: the failures by kind, each with its first message."""

    flaky: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    came_back: list[str] = field(default_factory=list)  # what passed when it ran again, forgiven or not
    broken: list[str] = field(default_factory=list)

    @property
    def passes(self) -> bool:
        return not (self.failing or self.broken) and len(self.flaky) <= MOST_FLAKY


@dataclass
class Run:
    """A run of pytest: its exit status, and what it wrote down; nothing when it ended before its end."""

    status: int
    failures: list[dict[str, Any]]
    left_out: int
    is_complete: bool


Look = Callable[[str], Run]


def run_pytest(arguments: Sequence[str], surroundings: Mapping[str, str], within_s: float | None = None) -> Run:
    """Run pytest in a fresh process. What runs longer than `within_s` is ended and counts as failed."""
    with tempfile.TemporaryDirectory(prefix="toolserver-outcomes-") as folder:
        file = Path(folder) / "outcomes.json"
        env = {**surroundings, FILE: str(file)}
        try:
            status = subprocess.run([sys.executable, "-m", "pytest", *arguments], env=env, timeout=within_s).returncode
        except subprocess.TimeoutExpired:
            return Run(int(pytest.ExitCode.INTERRUPTED), [], 0, False)
        if not file.exists():
            return Run(status, [], 0, False)
        outcome = json.loads(file.read_text(encoding="utf-8"))
    return Run(status, outcome["failures"], outcome["left_out"], True)


def judge_run(run: Run, look: Look, earlier: Sequence[Mapping[str, Any]], *, everything: bool = EVERYTHING) -> Verdict:
    """Judge a run. `look(id)` runs one test again; `earlier` are the reports of runs before this one."""
    verdict = Verdict()
    if run.status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not run.is_complete:
        verdict.broken.append(f"pytest ended with {run.status}, before its end")
    elif run.status == pytest.ExitCode.TESTS_FAILED and not (run.failures or run.left_out):
        verdict.broken.append("pytest failed, though no test did")
    if run.left_out and everything:
        verdict.broken.append(f"{run.left_out} skipped, though everything is required")
    for failure in run.failures[:MOST_LOOKED_AT]:
        judge_failure(failure, look, earlier, verdict)
    for failure in run.failures[MOST_LOOKED_AT:]:
        verdict.failing[failure["id"]] = f"not run again, as one of {len(run.failures)}: {failure['message']}"
    return verdict


def judge_failure(
    failure: Mapping[str, Any], look: Look, earlier: Sequence[Mapping[str, Any]], verdict: Verdict
) -> None:
    """Put one failure where it belongs."""
    name, message, is_law = failure["id"], failure["message"], failure["never_forgiven"]
    passes = False
    for _ in range(LOOKS):
        again = look(name)
        is_law = is_law or any(other["never_forgiven"] for other in again.failures)
        passes = again.status == pytest.ExitCode.OK
        if passes or is_law:
            break
    if passes:
        verdict.came_back.append(name)
    before = sum(name in run["came_back"] for run in earlier[-(RUNS_KEPT - 1) :])
    if passes and is_law:
        verdict.failing[name] = f"passed when it ran again, but is never forgiven: {message}"
    elif passes and before:
        verdict.failing[name] = f"flaky in {before + 1} of the last {RUNS_KEPT} runs: {message}"
    elif passes:
        verdict.flaky[name] = message
    else:
        verdict.failing[name] = message


def lines_on(verdict: Verdict, seed: int) -> list[str]:
    """What is printed at the end of a run."""
    lines = [f"  {kind:8} {name}\n           {message}" for kind, name, message in rows_of(verdict)]
    lines += [f"  broken   {sentence}" for sentence in verdict.broken]
    if not lines:
        return [f"every test passed at its first run (SEED={seed})"]
    over = f", and at most {MOST_FLAKY} may be" if len(verdict.flaky) > MOST_FLAKY else ""
    counts = f"{len(verdict.failing)} failing, {len(verdict.flaky)} flaky{over}"
    end = "the run passes; mend the flaky ones first" if verdict.passes else "the run fails"
    return ["", "second look:", *lines, f"{counts}: {end} (SEED={seed}; {REPORT})"]


def rows_of(verdict: Verdict) -> list[tuple[str, str, str]]:
    named = {"flaky": verdict.flaky, "failing": verdict.failing}
    return [(kind, name, message) for kind, found in named.items() for name, message in found.items()]


def read_reports(path: Path) -> list[dict[str, Any]]:
    """Return the reports of earlier runs, the oldest first."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []  # type: ignore[no-any-return]


def write_report(path: Path, verdict: Verdict, *, arguments: Sequence[str], seed: int) -> None:
    """Add a report to those of the last ten runs with the same arguments."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    report = {"at": at, "arguments": list(arguments), "seed": seed, "passes": verdict.passes}
    report |= {
        "flaky": verdict.flaky,
        "failing": verdict.failing,
        "came_back": verdict.came_back,
        "broken": verdict.broken,
    }
    reports = read_reports(path)
    same = [run for run in reports if run["arguments"] == report["arguments"]][-(RUNS_KEPT - 1) :]
    others = [run for run in reports if run["arguments"] != report["arguments"]]
    path.write_text(json.dumps([*others, *same, report], indent=1) + "\n", encoding="utf-8")


def options_of(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without the files and tests that they name."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [word for last, word in pairs if last in VALUED or not (ROOT / word.partition("::")[0]).exists()]


def main(arguments: Sequence[str]) -> int:
    """Run, look again, print and report. Return 0 when the run passes."""
    processes = ["-n", os.environ.get("WORKERS", "auto"), "--maxprocesses", "8"]
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
    seeds = [f"--hypothesis-seed={seed}"]
    surroundings = os.environ | {"PYTHONHASHSEED": str(seed), "SEED": str(seed)}
    first = run_pytest([*processes, *seeds, *arguments], surroundings)

    def look(name: str) -> Run:
        print(f"\nsecond look at {name}", flush=True)
        return run_pytest(["-n", "0", *seeds, *options_of(arguments), name], surroundings, LOOK_S)

    earlier = [run for run in read_reports(REPORT) if run["arguments"] == list(arguments)]
    verdict = judge_run(first, look, earlier)
    write_report(REPORT, verdict, arguments=arguments, seed=seed)
    for line in lines_on(verdict, seed):
        print(line, flush=True)
    return 0 if verdict.passes else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
