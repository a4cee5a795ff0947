"""`python -m tests.truth`: is every asserted fact true of the simulated world, or flagged?

Without arguments the named cases are judged; `--all` judges the whole matrix and `--seeded N` a tenth chosen by N.
`--weeks` lives three simulated weeks without faults and counts the warnings, the null sections and the requests.
`--paced` serves a week of normal and one of busy traffic and counts what our own pacing took from answers, and hosts
that got more than their budget; `--days` sets another length than a week.
`--tool NAME` keeps the cases of one tool; `--share` sets another share than a tenth.
Each falsehood is a line, and then the exit code is 1.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.truth.judge import run_judge
from tests.truth.matrix import all_cases, named_cases, seeded_cases
from tests.truth.paced import TRAFFIC, run_paced
from tests.truth.stage import SCENARIOS
from tests.truth.weeks import run_week

PART = 500  # cases that one process judges at a time


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.truth")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seeded", type=int)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--weeks", action="store_true")
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--tool", action="append")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.weeks:
        return live_weeks(given.workers)
    if given.paced:
        return live_paced_days(given.days, given.workers)
    if given.all:
        cases = list(dict.fromkeys(all_cases()))
    elif given.seeded is not None:
        cases = seeded_cases(given.seeded, given.share)
    else:
        cases = list(dict.fromkeys(named_cases()))
    if given.tool:
        cases = [case for case in cases if case.tool in given.tool]
    print(f"{len(cases)} cases", flush=True)
    began = time.perf_counter()
    cases.sort(key=lambda case: (case.tool, case.arguments, case.scenario))
    parts = [cases[start : start + PART] for start in range(0, len(cases), PART)]
    verdicts, false = [], 0
    with ProcessPoolExecutor(given.workers) as pool:
        for done in as_completed([pool.submit(run_judge, part) for part in parts]):
            verdicts.append(done.result())
            false += len(verdicts[-1].false)
            print(*verdicts[-1].false, sep="\n", end="\n" * bool(verdicts[-1].false), flush=True)
            print(f"{sum(v.cases for v in verdicts)} of {len(cases)} judged", file=sys.stderr, flush=True)
    judged, seconds = sum(v.cases for v in verdicts), time.perf_counter() - began
    print(f"{judged} cases judged in {seconds:.0f} s, {false} unflagged falsehoods")
    return 1 if false else 0


def live_weeks(workers: int) -> int:
    """Print what each week without faults held: 1 when a section was null, since nothing was wrong."""
    with ProcessPoolExecutor(workers) as pool:
        weeks = list(pool.map(run_week, SCENARIOS, [7.0] * len(SCENARIOS)))
    print(*weeks, sep="\n")
    return 1 if any(week.empty for week in weeks) else 0


def live_paced_days(days: float, workers: int) -> int:
    """Print what days of normal and busy traffic held: 1 when our own pacing took something, or a host got too much."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(run_paced, TRAFFIC, [days] * len(TRAFFIC)))
    print(*found, sep="\n")
    return 1 if any(each.faults for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
