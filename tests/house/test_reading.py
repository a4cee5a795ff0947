"""docs/reading-the-code.md is short, its links point at functions, and its order is that of a recorded call."""

import pytest

from tests.house import calls, reading


def walks() -> dict[str, list[reading.Stop]]:
    return reading.read_walks(reading.PAGE.read_text(encoding="utf-8"))


def test_each_walk_is_short():
    lengths = {heading: len(stops) for heading, stops in walks().items()}

    assert lengths.keys() == reading.MOST_STOPS.keys()
    assert all(length <= reading.MOST_STOPS[heading] for heading, length in lengths.items()), lengths


def test_each_link_points_at_the_function_that_it_names():
    stops = [stop for each in walks().values() for stop in each]

    assert [stop for stop in stops if reading.lines_of_functions(stop.place).get(stop.name) != stop.line] == [], (
        'make house ARGS="--reading" points the links anew'
    )


@pytest.mark.live
def test_a_recorded_call_reaches_the_stops_in_their_order():
    traces = calls.trace_calls(purchase=False, subscribed="briefing")
    for heading, stops in walks().items():
        functions = [(place, name) for place, name, _ in traces[reading.TRACED[heading]]]
        reached = [functions.index((stop.place, stop.name)) for stop in stops]

        assert reached == sorted(reached), heading


def test_a_stop_is_read_with_its_section():
    text = "## A free call\n\n1. [`Face.answer`](../rest_bridge/face.py#L12) answers.\n2. No link.\n\n## Tests\n"

    assert reading.read_walks(text) == {"A free call": [reading.Stop("rest_bridge/face.py", "Face.answer", 12)]}
