"""Test when several runs of the bench agree, and what is run again."""

import pytest

from bench.judge import Bar
from bench.repeat import gather, key_bars, repeat, show_runs


def bar(row, value, *, server=None, spread=0.0, bound=2.0):
    return Bar(
        row, f"row {row}", value, bound, "x", server=server, low=value * (1 - spread / 2), high=value * (1 + spread / 2)
    )


class Runs:
    """Runs that find these values of each row, one run after the other."""

    def __init__(self, **values):
        self.values = {int(name.removeprefix("row")): list(found) for name, found in values.items()}
        self.rows = []

    def __call__(self, rows):
        self.rows.append(list(rows))
        return [bar(row, self.values[row].pop(0)) for row in rows]


def test_runs_within_six_percent_are_not_repeated(capsys):
    runs = Runs(row1=[1.0, 1.05, 0.95], row2=[3.0, 3.0, 3.0])
    found = repeat(runs, [1, 2], 3)

    assert runs.rows == [[1, 2]] * 3
    assert [one.holds for one in found.values()] == [True, True]
    assert found[1, "", 0].distance == pytest.approx(0.05)
    assert (found[1, "", 0].verdict, found[2, "", 0].verdict) == ("reached", "missed")
    assert show_runs(found, [1, 2])
    assert "2 of 2 are within 6%" in capsys.readouterr().out


def test_a_row_that_differs_is_run_again_and_the_later_runs_count(capsys):
    runs = Runs(row1=[1.0, 1.0, 1.0], row2=[1.0, 1.2, 1.0, 1.1, 1.1, 1.1])
    found = repeat(runs, [1, 2], 3)

    assert runs.rows == [[1, 2]] * 3 + [[2]] * 3
    assert (found[2, "", 0].median, found[2, "", 0].first) == (1.1, pytest.approx(0.2))
    assert show_runs(found, [1, 2])
    assert "measured again, 20.0% before" in capsys.readouterr().out


def test_a_row_that_still_differs_fails(capsys):
    found = repeat(Runs(row1=[1.0, 1.2, 1.0, 1.0, 1.0, 1.07]), [1], 3)

    assert not found[1, "", 0].holds
    assert not show_runs(found, [1])
    assert "NOT within 6%" in capsys.readouterr().out


def test_six_percent_exactly_hold():
    found = gather([[bar(1, 100.0)], [bar(1, 106.0)], [bar(1, 100.0)]])
    assert found[1, "", 0].holds
    assert not gather([[bar(1, 100.0)], [bar(1, 106.1)], [bar(1, 100.0)]])[1, "", 0].holds


def test_a_row_that_was_not_measured_in_each_run_fails(capsys):
    found = gather([[bar(1, 1.0)], [bar(1, 1.0)], []])

    assert (found[1, "", 0].holds, found[1, "", 0].verdict) == (False, "not judged")
    assert not show_runs(found, [1])
    assert not show_runs(gather([[bar(1, 1.0)]] * 3), [1, 2])
    assert "2  not measured in any run" in capsys.readouterr().out


def test_a_row_that_spreads_in_one_run_has_no_verdict():
    found = gather([[bar(1, 1.0)], [bar(1, 1.0, spread=0.4)], [bar(1, 1.0)]])[1, "", 0]

    assert (found.holds, found.is_judged, found.verdict) == (True, False, "not judged")


def test_a_row_that_is_missed_in_some_runs_says_in_how_many():
    assert gather([[bar(1, 1.99)], [bar(1, 2.01)], [bar(1, 2.01)]])[1, "", 0].verdict == "missed in 2 of 3"


def test_bars_of_a_row_are_told_apart_by_server_and_place():
    found = key_bars([bar(1, 1.0, server="uvicorn"), bar(1, 2.0, server="hypercorn"), bar(1, 3.0, server="uvicorn")])

    assert {key: one.value for key, one in found.items()} == {
        (1, "uvicorn", 0): 1.0,
        (1, "hypercorn", 0): 2.0,
        (1, "uvicorn", 1): 3.0,
    }
