"""Test how pairs are measured and summarized, and when a comparison is measured again or not judged."""

import itertools

import pytest

from bench.judge import Bar, Line
from bench.pairs import (
    AGAIN,
    PIECE_US,
    Pair,
    Side,
    do_piece,
    measure_pairs,
    ratio_of,
    reference_of,
    spread_of,
    summarize,
    value_of,
)


def side(name, figures, log=None):
    """A side whose halves have these figures, one after the other and again from the first."""
    found = itertools.cycle(figures)

    def measure():
        if log is not None:
            log.append(name)
        return {"cpu_us": next(found)}

    return Side(name, measure)


def pair_of(figures, **more):
    return Pair("a row", [side("ours", figures), side("theirs", [1.0])], ratio_of("cpu_us"), **more)


def test_the_median_has_the_interval_of_the_binomial_distribution():
    found = summarize([float(n) for n in range(1, 21)])

    assert (found.median, found.low, found.high, found.pairs) == (10.5, 6.0, 15.0, 20)
    assert found.share == pytest.approx(9 / 10.5)


def test_few_figures_have_the_interval_from_least_to_most():
    found = summarize([5.0, 1.0, 2.0, 3.0, 4.0])
    assert (found.low, found.high) == (1.0, 5.0)


@pytest.mark.parametrize(
    ("median", "low", "high", "share"),
    [
        (2.0, 1.9, 2.1, 0.1),
        (2.0, 2.0, 2.0, 0.0),
        (-2.0, -2.1, -1.9, 0.1),
        (0.0, -1.0, 1.0, float("inf")),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_a_spread_is_a_share_of_the_median(median, low, high, share):
    assert spread_of(median, low, high) == pytest.approx(share)


async def test_the_order_of_the_sides_changes_with_each_pair():
    log = []
    pair = Pair("a row", [side("ours", [1.0], log), side("theirs", [1.0], log)], ratio_of("cpu_us"))

    await measure_pairs([pair], 4)

    assert log == ["ours", "theirs", "theirs", "ours"] * 2


async def test_the_figure_is_formed_of_each_pair_and_load_on_both_sides_cancels():
    load = [1.0, 10.0, 2.0, 7.0]
    ours, theirs = [3 * pace for pace in load], [2 * pace for pace in load]
    pair = Pair("a row", [side("ours", ours), side("theirs", theirs)], ratio_of("cpu_us"))

    await measure_pairs([pair], 8)

    found = pair.summarize()
    assert (found.median, found.share, found.again) == (pytest.approx(1.5), pytest.approx(0.0), 0)


async def test_what_spreads_is_measured_again_twice_at_most_and_the_pairs_add_up():
    steady, wild = pair_of([1.0]), pair_of([1.0, 2.0, 3.0, 4.0])

    await measure_pairs([steady, wild], 8)

    assert (len(steady.figures), steady.again) == (8, 0)
    assert (len(wild.figures), wild.again) == (8 * (1 + AGAIN), AGAIN)


async def test_what_comes_to_rest_is_measured_again_once():
    figures = iter([1.0, 2.0] * 4 + [1.5] * 100)
    pair = Pair("a row", [Side("ours", lambda: {"cpu_us": next(figures)})], value_of("cpu_us"))

    await measure_pairs([pair], 8)

    assert (len(pair.figures), pair.again) == (16, 1)


async def test_what_is_only_shown_is_measured_in_half_of_the_rounds_and_never_again():
    pair = pair_of([1.0, 9.0], is_judged=False)

    await measure_pairs([pair], 8)

    assert (len(pair.figures), pair.again) == (4, 0)


async def test_a_side_may_wait_and_a_pair_may_be_measured_more_often():
    async def measure():
        return {"ms": 4.0}

    pair = Pair("a row", [Side("ours", measure)], value_of("ms"), often=3)

    samples = await measure_pairs([pair], 2)

    assert (pair.figures, samples["ours"]) == ([4.0] * 6, [{"ms": 4.0}] * 6)


def test_a_time_is_restated_for_the_reference_machine():
    assert reference_of("cpu_us")({"cpu_us": 2 * PIECE_US}, {"cpu_us": 50.0}) == pytest.approx(25.0)
    assert do_piece()["cpu_us"] > 0


@pytest.mark.parametrize(
    ("value", "low", "high", "judged", "missed", "reached"),
    [
        (1.0, 0.99, 1.01, True, False, True),
        (1.2, 1.19, 1.21, True, True, False),
        (1.0, 0.8, 1.2, False, False, False),
        (9.0, 1.0, 20.0, False, False, False),
        (1.0, None, None, True, False, True),
    ],
)
def test_a_row_that_spreads_is_neither_reached_nor_missed(value, low, high, judged, missed, reached):
    bar = Bar(1, "a row", value, 1.1, low=low, high=high, pairs=20)

    assert (bar.is_judged, bar.is_missed, bar.is_reached) == (judged, missed, reached)
    assert ("no verdict" in bar.note) == (not judged)


async def test_a_bar_tells_how_its_pair_was_measured():
    pair = pair_of([1.0, 1.02])
    await measure_pairs([pair], 10)

    bar = Bar.of_pair(pair, 7, 1.5, "x", server="uvicorn")

    assert (bar.row, bar.what, bar.value, bar.bar, bar.server, bar.pairs) == (7, "a row", 1.01, 1.5, "uvicorn", 10)
    assert (bar.low, bar.high, bar.again, bar.note) == (1.0, 1.02, 0, "")
    assert Bar(1, "x", 1.0, 1.0, again=1).note == "measured again"


def test_a_line_shows_the_quartiles_of_all_halves():
    assert Line.of_values("ours", [1.0, 2.0, 3.0, 4.0, 5.0]) == Line("ours", 3.0, 2.0, 4.0)
    assert Line.of_values("ours", [7.0], "uvicorn") == Line("ours", 7.0, 7.0, 7.0, "uvicorn")
