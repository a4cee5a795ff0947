"""SWE-bench's leaderboards."""

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.swebench  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.benchmarks import MINI, swe_bench
from tools.sources.swebench import LEADERBOARDS, Submission, newest, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world import answers
from toolserver.world.model import World

ROW = {"name": "OpenHands + GPT-5", "resolved": 71.8, "tags": ["Model: gpt-5", "Org: OpenHands"]}


def boards(rows, bash_only=(ROW,)):
    listed = {"Verified": list(rows), "bash-only": list(bash_only), "Lite": []}
    return {"leaderboards": [{"name": name, "results": found} for name, found in listed.items()]}


def test_the_recorded_boards_parse_to_their_values(sample):
    raw = json.loads(sample("harnesses/swebench-leaderboards-2025-11.json"))
    found = parse(raw, None)
    by_name = {board["name"]: board["results"] for board in raw["leaderboards"]}
    assert [s.resolved_percent for s in found.verified] == [row["resolved"] for row in by_name["Verified"]]
    assert found.bash_only[0] == Submission(
        "Claude 4.5 Sonnet (20250929)",
        ("claude-sonnet-4-5-20250929",),
        70.6,
        date(2025, 9, 29),
        True,
        "https://www.anthropic.com/news/claude-sonnet-4-5",
    )
    assert found.verified[0].models == ("Doubao-Seed-Code", "Doubao-Seed-1.6")
    assert newest(found) == datetime(2025, 9, 30, tzinfo=UTC)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=40))
def test_no_submission_is_invented_or_dropped(scores):
    found = parse(boards(ROW | {"resolved": score} for score in scores), None)
    assert [s.resolved_percent for s in found.verified] == scores


def test_optional_members_may_be_missing_or_of_another_kind():
    odd = ROW | {
        "tags": None,
        "date": "yesterday",
        "checked": "yes",
        "site": ["https://a.example/", "https://b.example/"],
    }
    first, second = parse(boards([ROW, odd]), None).verified
    assert first == Submission("OpenHands + GPT-5", ("gpt-5",), 71.8, None, None, None)
    assert second == Submission("OpenHands + GPT-5", (), 71.8, None, None, "https://a.example/")


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"leaderboards": []},
        boards([]),
        boards([ROW | {"resolved": None}]),
        boards([ROW | {"resolved": 101}]),
        boards([ROW | {"resolved": 0}]),
        boards([{"name": "x"}]),
    ],
)
def test_anything_else_is_refused(wrong):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(wrong, None)


def test_the_twin_has_the_boards_of_the_world():
    found, known = ask(LEADERBOARDS), swe_bench(World(1, NOW))
    single = [s for s in found.verified if len(s.models) == 1]
    assert [(s.models[0], s.resolved_percent) for s in single] == [(k.model, k.percent) for k in known]
    assert sum(s.resolved_percent for s in found.bash_only) == pytest.approx(
        sum(k.percent for k in known if k.harness == MINI)
    )
    assert {len(s.models) for s in found.verified} == {0, 1, 2}


def test_what_is_not_the_document_is_refused_and_other_forms_of_it_are_read():
    asked = LEADERBOARDS.request
    reply = fetch(World(1, NOW), asked)
    told = parse_body(LEADERBOARDS, asked, None, reply.body)
    zeros, renamed = answers.zeros(reply, NOW).body, answers.drift(reply, "renamed").body
    for wrong in (b"", b"<html></html>", b"404: Not Found", reply.body[:900], zeros, renamed):
        with pytest.raises(SourceError):
            parse_body(LEADERBOARDS, asked, None, wrong)
    for form in ("extra", "strings", "bom"):
        assert parse_body(LEADERBOARDS, asked, None, answers.drift(reply, form).body) == told
    with pytest.raises(SourceEmpty):
        ask(LEADERBOARDS, form="empty")
    with pytest.raises(SourceChanged, match="no board verified"):
        ask(LEADERBOARDS, form="error200")
