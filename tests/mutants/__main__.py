"""`make mutants`: each fault of the list is put into a copy of the project, and the tests of its room have to go red.

`python -m tests.mutants [WORD …]` takes the mutants whose name or test holds one of the words. Each is printed as soon
as it is judged, those with quick tests first. The survivors stand again at the end, and the exit code is 1. A test file
that is red without any fault is an error of its own: it would prove nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tests.mutants.boundaries import BOUNDARIES
from tests.mutants.faults import MUTANTS, Mutant, room_of_tests
from tests.mutants.rooms import list_room_faults
from tests.mutants.sql import SQL
from tests.mutants.truth import LIES

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 300
WORKERS = int(os.environ.get("WORKERS", "auto").replace("auto", str(min(os.cpu_count() or 1, 8)))) or 1
RED = 1  # pytest's exit code for failed tests, and the oracle's for falsehoods
ORACLE = "oracle:"


def copy_project(target: Path) -> None:
    """Copy the files of the project as they are now, but for what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def command_of(test: str) -> list[str]:
    """What is run: the oracle on the named cases of a tool, or pytest on a file or folder."""
    if test.startswith(ORACLE):
        return ["tests.truth", "--tool", test.removeprefix(ORACLE)]
    return ["pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", test]


def run_tests(copy: Path, test: str) -> int:
    """The exit code of a test file or folder, or of the oracle, in a copy."""
    command = [sys.executable, "-B", "-m", *command_of(test)]
    environment = {name: value for name, value in os.environ.items() if name != "REQUIRE"} | {"PYTHONPATH": str(copy)}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return RED  # a fault that makes a test hang is seen too
    return done.returncode


@contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with one fault in it."""
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(text), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


class Verdict(NamedTuple):
    """Whether a test file said what it should, and how many seconds it took."""

    is_right: bool
    took_s: float


def judge(copies: "SimpleQueue[Path]", mutant: Mutant | None, test: str) -> Verdict:
    """Judge a test file, which should be red with the mutant, and green without one."""
    copy = copies.get()
    began = time.monotonic()
    try:
        if mutant is None:
            return Verdict(run_tests(copy, test) == 0, time.monotonic() - began)
        with mutated(copy, mutant):
            return Verdict(run_tests(copy, test) == RED, time.monotonic() - began)
    finally:
        copies.put(copy)


def chosen(words: Sequence[str]) -> list[Mutant]:
    """Those whose name, or whose test, holds one of the words; all without any."""
    every = (*MUTANTS, *SQL, *LIES, *BOUNDARIES, *list_room_faults())
    return [mutant for mutant in every if not words or any(word in f"{mutant.name} {mutant.test}" for word in words)]


def main(words: Sequence[str]) -> int:
    """Judge the chosen mutants, and print each as it is judged."""
    mutants, began = chosen(words), time.monotonic()
    tests = list(dict.fromkeys(mutant.test for mutant in mutants))
    print(f"{len(mutants)} mutants, {len(tests)} files or folders of tests, each of which is run without a fault first")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(WORKERS):
            copy_project(copy := Path(folder, str(number)))
            copies.put(copy)
        clean = {pool.submit(judge, copies, None, test): test for test in tests}
        verdicts: dict[str, Verdict] = {}
        for future in as_completed(clean):
            verdict = verdicts[clean[future]] = future.result()
            if not verdict.is_right:
                print(f"red without any fault: {clean[future]}", flush=True)
        mutants.sort(key=lambda mutant: verdicts[mutant.test].took_s)
        faulty = {pool.submit(judge, copies, mutant, mutant.test): mutant for mutant in mutants}
        survivors = []
        for number, future in enumerate(as_completed(faulty), 1):
            mutant, verdict = faulty[future], future.result()
            survivors += [] if verdict.is_right else [mutant]
            print(f"{number:4} {describe(mutant, verdict)}", flush=True)
    red = [test for test in tests if not verdicts[test].is_right]
    print(*report(len(mutants), survivors, red), f"in {time.monotonic() - began:.0f} s", sep="\n")
    return 1 if survivors or red else 0


def describe(mutant: Mutant, verdict: Verdict) -> str:
    """One line about a mutant that was judged: its room, the fault, and the tests that saw it or did not."""
    room = room_of_tests(mutant.file).removeprefix("tests/")
    word = "killed by" if verdict.is_right else "SURVIVED"
    return f"{room}: {mutant.name}: {word} {mutant.test} in {verdict.took_s:.0f} s"


def report(count: int, survivors: Iterable[Mutant], red: Iterable[str]) -> Iterator[str]:
    """What is printed: each survivor with the test file that should have seen it."""
    survivors = list(survivors)
    for test in red:
        yield f"red without any fault: {test}"
    for mutant in survivors:
        yield f"survived: {mutant.name} ({mutant.file}); {mutant.test} stays green"
    yield f"{count} mutants, {count - len(survivors)} killed by the tests of their own room"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
