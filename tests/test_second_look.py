"""Test which failures a second look forgives, what it reports, and that the program does so with real tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outcomes import is_never_forgiven
from tests.second_look import (
    MOST_FLAKY,
    MOST_LOOKED_AT,
    Run,
    judge_run,
    lines_on,
    options_of,
    read_reports,
    write_report,
)

ROOT = Path(__file__).resolve().parent.parent
GOOD, BAD = Run(0, [], 0, True), Run(1, [], 0, True)


def failed(*names, never_forgiven=False, **more):
    failures = [{"id": name, "message": f"why {name}", "never_forgiven": never_forgiven} for name in names]
    return Run(1, failures, more.get("left_out", 0), True)


class Looks:
    """What each test does when it runs again, one look after the other."""

    def __init__(self, **results):
        self.results = {name: list(found) for name, found in results.items()}
        self.count = 0

    def __call__(self, name):
        self.count += 1
        return self.results[name].pop(0)


def test_a_run_without_failures_passes_and_nothing_is_run_again():
    verdict = judge_run(GOOD, Looks(), [])

    assert (verdict.passes, lines_on(verdict, 7)) == (True, ["every test passed at its first run (SEED=7)"])


def test_what_fails_three_times_fails_the_run():
    looks = Looks(a=[BAD, BAD, GOOD])
    verdict = judge_run(failed("a"), looks, [])

    assert (verdict.passes, verdict.failing, verdict.flaky, looks.count) == (False, {"a": "why a"}, {}, 2)


@pytest.mark.parametrize("looks", [[GOOD], [BAD, GOOD]])
def test_what_passes_alone_is_flaky_and_listed_with_its_first_failure(looks):
    verdict = judge_run(failed("a"), Looks(a=looks), [])

    assert (verdict.passes, verdict.flaky, verdict.came_back) == (True, {"a": "why a"}, ["a"])
    assert [line.strip() for line in "\n".join(lines_on(verdict, 7)).splitlines()][2:4] == ["flaky    a", "why a"]


def test_three_flaky_tests_pass_and_four_do_not():
    names = ["a", "b", "c", "d"]
    looks = {name: [GOOD] for name in names}

    assert judge_run(failed(*names[:MOST_FLAKY]), Looks(**looks), []).passes
    four = judge_run(failed(*names), Looks(**looks), [])
    assert (four.passes, four.failing, list(four.flaky)) == (False, {}, names)
    assert "4 flaky, and at most 3 may be: the run fails" in lines_on(four, 7)[-1]


def test_flaky_tests_do_not_excuse_one_that_fails():
    verdict = judge_run(failed("a", "b"), Looks(a=[GOOD], b=[BAD, BAD]), [])

    assert (verdict.passes, list(verdict.flaky), list(verdict.failing)) == (False, ["a"], ["b"])


@pytest.mark.parametrize("known", ["at first", "when it ran again"])
def test_a_property_is_never_forgiven(known):
    first = failed("a", never_forgiven=known == "at first")
    looks = [GOOD] if known == "at first" else [failed("a", never_forgiven=True), GOOD]  # a crash names no test's kind
    verdict = judge_run(first, Looks(a=looks), [])

    assert not verdict.passes
    assert "a" in verdict.failing


def test_what_came_back_in_one_of_the_nine_runs_before_counts_as_failing():
    other, same = {"came_back": []}, {"came_back": ["a"]}

    recent = judge_run(failed("a"), Looks(a=[GOOD]), [same, *[other] * 8])
    assert (recent.passes, recent.failing) == (False, {"a": "flaky in 2 of the last 10 runs: why a"})
    assert judge_run(failed("a"), Looks(a=[GOOD]), [same, *[other] * 9]).passes


def test_many_failures_are_not_run_again():
    names = [f"t{n}" for n in range(MOST_LOOKED_AT + 2)]
    looks = Looks(**{name: [GOOD] for name in names})
    verdict = judge_run(failed(*names), looks, [])

    assert (looks.count, list(verdict.failing)) == (MOST_LOOKED_AT, names[-2:])


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (Run(2, [], 0, True), "pytest ended with 2, before its end"),
        (Run(5, [], 0, True), "pytest ended with 5, before its end"),
        (Run(-9, [], 0, False), "pytest ended with -9, before its end"),
        (Run(0, [], 0, False), "pytest ended with 0, before its end"),
        (Run(1, [], 0, True), "pytest failed, though no test did"),
    ],
)
def test_a_run_that_broke_off_is_never_excused(run, said):
    verdict = judge_run(run, Looks(), [])

    assert (verdict.passes, verdict.broken) == (False, [said])


def test_a_skip_fails_a_run_beside_a_flaky_test_where_everything_is_required():
    verdict = judge_run(failed("a", left_out=2), Looks(a=[GOOD]), [], everything=True)

    assert (verdict.passes, verdict.broken) == (False, ["2 skipped, though everything is required"])


def test_the_report_keeps_ten_runs_of_the_same_arguments(tmp_path):
    path = tmp_path / "report.json"
    for n in range(12):
        write_report(path, judge_run(GOOD, Looks(), []), arguments=["tests/calls"], seed=n)
    write_report(path, judge_run(failed("a"), Looks(a=[GOOD]), []), arguments=[], seed=99)

    reports = read_reports(path)
    assert [run["seed"] for run in reports if run["arguments"]] == list(range(2, 12))
    assert (reports[-1]["flaky"], reports[-1]["came_back"], reports[-1]["passes"]) == ({"a": "why a"}, ["a"], True)


def test_a_second_look_has_the_options_of_the_run_without_its_files():
    words = ["-x", "tests/calls", "-k", "tests", "--durations=3", "tests/test_app.py::test_x[a]", "-p", "tests"]
    assert options_of(words) == ["-x", "-k", "tests", "--durations=3", "-p", "tests"]


def test_properties_truth_and_kills_are_never_forgiven(request):
    class Item:
        obj = None

        def __init__(self, nodeid, marker=None):
            self.nodeid, self.marker = nodeid, marker

        def get_closest_marker(self, name):
            return self.marker if name == "never_forgiven" else None

    assert is_never_forgiven(Item("tests/truth/test_truth.py::test_x"))
    assert is_never_forgiven(Item("tests/live/test_killing.py::test_x"))
    assert is_never_forgiven(Item("tests/calls/test_x.py::test_x", marker="yes"))
    assert not is_never_forgiven(Item("tests/live/test_catalog.py::test_x"))
    assert not is_never_forgiven(request.node)


MODULE = """
import os
import pathlib
import pytest
from hypothesis import given, strategies

def seen(name):
    path = pathlib.Path(__file__).with_name(name)
    count = int(path.read_text()) if path.exists() else 0
    path.write_text(str(count + 1))
    return count

def test_good(): ...
def test_broken(): assert "broken" not in {broken!r}
@pytest.mark.parametrize("n", range({flaky}))
def test_second(n): assert seen(f"second{{n}}") % 2, "arranged"
@given(strategies.just(1))
def test_property(n):
    first = pathlib.Path(__file__).with_name("first")
    first.exists() or first.write_text(str(os.getpid()))
    assert not {law} or first.read_text() != str(os.getpid())
"""


def judged(folder, *, broken="", flaky=0, law=False):
    """The exit status and the last lines of the program over tests of the test's own, in two processes."""
    (folder / "test_one.py").write_text(MODULE.format(broken=broken, flaky=flaky, law=law))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n slow(reason): s\n live: l\n never_forgiven: n\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "WORKERS": "2", "REQUIRE": "", "SEED": "5"}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others take half of each start
    own = [f"tests.{name}" for name in ("outcomes", "cpu_time", "sets", "forks")]
    plugins = [word for name in ("xdist", "_hypothesis_pytestplugin", *own) for word in ("-p", name)]
    command = [sys.executable, "-m", "tests.second_look", *plugins, "-q", "-p", "no:cacheprovider"]
    command += [str(folder / "test_one.py"), "-c", str(folder / "pytest.ini")]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    said = done.stdout.partition("\nsecond look:")[2]
    return done.returncode, said or done.stdout + done.stderr, read_reports(folder / "flaky-tests.json")


@pytest.mark.slow("it starts pytest several times")
@pytest.mark.parametrize(
    ("arranged", "status", "words"),
    [
        ({"broken": "broken"}, 1, ["failing  ", "::test_broken", "1 failing, 0 flaky: the run fails (SEED=5"]),
        ({"flaky": 1}, 0, ["flaky    ", "::test_second[0]", "AssertionError: arranged", "the run passes"]),
        ({"flaky": 4}, 1, ["4 flaky, and at most 3 may be: the run fails"]),
        ({"law": True}, 1, ["never forgiven", "::test_property", "the run fails"]),
    ],
    ids=["broken", "every second time", "four of them", "a property"],
)
def test_real_runs_end_as_they_must(tmp_path, arranged, status, words):
    code, said, reports = judged(tmp_path, **arranged)

    assert code == status, said
    for word in words:
        assert word in said
    assert reports[-1]["passes"] == (status == 0)
