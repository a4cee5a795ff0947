"""The harnesses tool: four views on the same boards."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import tools.simulated.aider
import tools.simulated.metr
import tools.simulated.swebench  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.harnesses import (
    bash_only,
    combine,
    gaps,
    harness_of,
    harnesses,
    newest_result,
    polyglot,
    terminal_bench,
    time_horizon,
    tops,
    verified_board,
)
from tools.simulated.benchmarks import MODELS
from tools.sources.aider import PolyglotRun
from tools.sources.metr import TimeHorizon
from tools.sources.swebench import Submission
from toolserver.registry.registry import operation_of
from toolserver.world.model import ROUTES, World

DAY = date(2027, 1, 15)
BOARDS = ["swe_bench_verified", "swe_bench_bash_only", "aider_polyglot", "metr_time_horizon", "terminal_bench"]
LIVE = {"SWEbench.leaderboards", "Aider.polyglot_leaderboard", "METR.time_horizons"}


def submission(name, score, *models):
    return Submission(name, models, score, None, None, None)


@pytest.mark.parametrize(
    ("name", "harness"),
    [
        ("TRAE + Doubao-Seed-Code", "TRAE"),
        ("Atlassian Rovo Dev (2025-09-02)", "Atlassian Rovo Dev"),
        ("EPAM AI/Run Developer Agent v20250719 + Claude 4 Sonnet (x) + y", "EPAM AI/Run Developer Agent v20250719"),
        ("W&B Programmer O1 crosscheck5", "W&B Programmer O1 crosscheck5"),
        ("Gru(2024-12-08)", "Gru(2024-12-08)"),
        ("C++ Agent", "C++ Agent"),
    ],
)
def test_the_harness_is_what_stands_before_the_model(name, harness):
    assert harness_of(name) == harness


def test_a_gap_is_between_the_best_and_the_worst_harness_of_one_model():
    board = verified_board(
        [
            submission("A + m", 60, "m"),
            submission("A + m", 70, "m"),
            submission("B + m", 40, "m"),
            submission("C + m", 50, "m"),
            submission("D + m + n", 99, "m", "n"),
            submission("E", 98),
            submission("F + n", 30, "n"),
        ],
        DAY,
    )
    (gap,) = gaps([board])
    assert (gap.benchmark, gap.model, gap.delta) == ("swe_bench_verified", "m", 30)
    assert (gap.best.harness, gap.best.score, gap.worst.harness) == ("A", 70, "B")


def test_a_pair_measured_once_cannot_win_and_minutes_do_not_count():
    boards = [
        verified_board([submission("mini-SWE-agent + m", 40, "m"), submission("A + best", 80, "best")], DAY),
        bash_only([submission("m", 30, "m"), submission("n", 60, "n")], DAY),
        time_horizon([TimeHorizon("m", 100, None)], DAY),
        polyglot([PolyglotRun("m", "diff", 88, None)], DAY),
    ]
    (pair,) = combine(boards)
    assert (pair.harness, pair.model, pair.benchmarks) == ("mini-SWE-agent", "m", 2)
    assert (pair.combined_score, pair.coverage) == (50, 0.67)


scores = st.lists(
    st.tuples(st.sampled_from("ABC"), st.sampled_from("mn"), st.floats(1, 100).map(lambda x: round(x, 2))), min_size=1
)


@given(scores, scores)
def test_comparisons_stay_within_what_was_measured(first, second):
    boards = [
        verified_board([submission(f"{h} + {m}", score, m) for h, m, score in first], DAY),
        polyglot([PolyglotRun(m, h, score, None) for h, m, score in second], DAY),
    ]
    for gap in gaps(boards):
        assert gap.best.score >= gap.worst.score
        assert gap.best.harness != gap.worst.harness
        assert gap.delta == pytest.approx(gap.best.score - gap.worst.score, abs=0.01)
    assert combine(boards) == []  # harnesses of the two boards never share a name
    assert [top.top.score for top in tops(boards)] == [max(s for *_, s in first), max(s for *_, s in second)]
    for board, rows in zip(boards, (first, second), strict=True):
        assert len(board.shown.results) == len(rows)


def test_the_shipped_copy_has_a_date_and_its_results_have_theirs():
    shipped = terminal_bench().shown
    assert shipped.as_of == date(2026, 9, 19)
    assert shipped.results[0].score == max(result.score for result in shipped.results)
    assert all(result.reported_at <= shipped.as_of and 0 < result.score < 100 for result in shipped.results)
    assert newest_result([terminal_bench()]) == date(2026, 9, 2)
    assert newest_result([]) is None


async def test_raw_holds_every_board_with_the_day_it_was_read(compose):
    made = (await compose(harnesses, {"limit": 200})).json
    assert (made["view"], made["schema_version"]) == ("raw", 2)
    assert [board["id"] for board in made["benchmarks"]] == BOARDS
    aider = next(board for board in made["benchmarks"] if board["id"] == "aider_polyglot")
    newest = max(result["reported_at"] for result in aider["results"] if result["reported_at"])
    assert newest < "2027-01-15"
    days = ["2027-01-15"] * 2 + [newest, "2027-01-15", "2026-09-19"]
    assert [board["as_of"] for board in made["benchmarks"]] == days
    for board in made["benchmarks"]:
        listed = [result["score"] for result in board["results"]]
        assert listed == sorted(listed, reverse=True)
    assert made["freshness"] == {"checked_at": "2027-01-15T08:00:00Z", "newest_result": "2026-09-02"}
    secret = next(r for r in made["benchmarks"][0]["results"] if r["harness"] == "Secret Agent")
    assert (secret["model"], secret["id"], secret["verified"]) == (None, "Secret Agent:unknown", False)


async def test_summary_has_the_best_of_each(compose):
    made = (await compose(harnesses, {"view": "summary"})).json
    expected = ROUTES.expectations["harnesses"](World(1, NOW), {"view": "summary"})
    assert [board["id"] for board in made["benchmarks"]] == BOARDS
    assert made["benchmarks"][0]["top"] == expected["benchmarks"][0]["top"]
    assert len(made["top_combined"]) == 10
    assert len(made["biggest_gaps"]) == 5


async def test_gaps_and_combined_agree_with_the_summary(compose):
    summary = (await compose(harnesses, {"view": "summary"})).json
    widest = (await compose(harnesses, {"view": "gaps"})).json["gaps"]
    best = (await compose(harnesses, {"view": "combined"})).json["leaderboard"]
    assert widest[:5] == summary["biggest_gaps"]
    assert best[:10] == summary["top_combined"]
    assert len(best) == len(MODELS)
    assert {pair["benchmarks"] for pair in best} == {2}
    assert [gap["delta"] for gap in widest] == sorted((gap["delta"] for gap in widest), reverse=True)


def test_another_view_is_refused():
    with pytest.raises(ValidationError):
        operation_of(harnesses).arguments.model_validate({"view": "graph"})


@pytest.mark.parametrize(
    ("down", "left"),
    [
        ({"SWEbench.leaderboards"}, BOARDS[2:]),
        ({"Aider.polyglot_leaderboard"}, [*BOARDS[:2], *BOARDS[3:]]),
        ({"METR.time_horizons"}, [*BOARDS[:3], BOARDS[4]]),
        (LIVE, BOARDS[4:]),
    ],
)
async def test_a_board_that_cannot_be_read_is_left_out_and_named(compose, down, left):
    made = await compose(harnesses, down=down)
    assert [board["id"] for board in made.json["benchmarks"]] == left
    codes = [warning.code for warning in made.notes.warnings if warning.code != "truncated"]
    assert codes == ["section_unavailable"] * len(down)
    for view in ("summary", "gaps", "combined"):
        assert (await compose(harnesses, {"view": view}, down=down)).json["view"] == view


async def test_the_shipped_copy_is_named_among_the_sources_without_a_time_of_reading(compose):
    made = await compose(harnesses)
    notes = {note.source.name: note for note in made.notes.sources}
    assert set(notes) == {*LIVE, "Bundled.terminal_bench"}
    shipped = notes["Bundled.terminal_bench"]
    assert (shipped.status, shipped.fetched_at) == ("cached", None)


async def test_a_board_shows_its_best_and_says_how_many_it_has(compose):
    made = await compose(harnesses, {"limit": 2})
    assert {len(board["results"]) for board in made.json["benchmarks"]} == {2}
    assert all(w.total > 2 for w in made.notes.warnings if w.section.startswith("data.benchmarks."))
    assert len(made.notes.warnings) == len(BOARDS)
