"""Without a network every tool says so at once over stdio and one line is logged; answers come back with it."""

import json
from typing import Any

import pytest

from tests.rehearsal.offline import BETWEEN_S
from tests.rehearsal.private_net import run_in_net
from tests.served import all_tools

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

BACK_WITHIN_S = 5
WITHOUT_SOURCES = {"ai_stats", "internet_pulse"}  # written down by us; and the measure of this network itself
SHORTEST_WAIT_S = min(source.timeout_s for operation in all_tools() for source in operation.sources)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_in_net("tests.rehearsal.offline", tmp_path_factory.mktemp("offline"), within_s=280)


@pytest.mark.parametrize("store", ["stored", "empty"])
def test_no_tool_waits_for_a_source(seen, store):
    longest = max(seen[store], key=lambda name: seen[store][name]["took_s"])
    print(f"\n{store}: {longest} took longest, {seen[store][longest]['took_s']:.2f} s")
    assert len(seen[store]) == 43
    assert [name for name, answer in seen[store].items() if answer["took_s"] >= SHORTEST_WAIT_S] == []


def test_with_nothing_stored_a_free_tool_says_why_and_a_paid_one_is_not_charged(seen):
    for name, answer in seen["empty"].items():
        if answer["tier"] == "premium":
            assert answer["is_error"], name
            assert "upstream_unavailable" in answer["text"], name
            assert answer["charged"] == 0, name
        elif name not in WITHOUT_SOURCES:
            assert (answer["is_error"], answer["stale"]) == (False, True), name
            assert "no_network" in answer["codes"], name


def test_with_stored_answers_a_free_tool_gives_them_and_marks_those_that_are_not_new(seen):
    for name, answer in seen["stored"].items():
        if answer["tier"] == "free":
            assert not answer["is_error"], name
            assert not answer["stale"] or "no_network" in answer["codes"], name


@pytest.mark.parametrize(
    ("store", "events"), [("stored", ["there is"]), ("empty", ["there is", "the network is back"])]
)
def test_one_line_is_logged_when_the_network_is_gone_and_one_when_it_is_back(seen, store, events):
    logged = [json.loads(line) for line in seen["logs"][store]]
    lines = [line["event"] for line in logged if line["level"] in ("warning", "error")]
    assert len(lines) == len(events), lines
    assert all(line.startswith(event) for line, event in zip(lines, events, strict=True))


def test_the_first_good_answer_comes_soon_after_the_network(seen):
    print(f"\nback after {seen['back_s']:.1f} s")
    assert seen["tries"] <= BACK_WITHIN_S / BETWEEN_S
