"""Aider's leaderboard."""

import re
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.aider  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.benchmarks import polyglot
from tools.sources.aider import POLYGLOT, PolyglotRun, newest, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world.model import World

ROW = "- model: {model}\n  edit_format: diff\n  pass_rate_2: {score}\n  date: 2027-01-01\n"


def test_the_recorded_board_parses_to_its_values(sample):
    text = sample("harnesses/aider-polyglot_leaderboard.yml").decode()
    found = parse(text, None)
    assert [run.solved_percent for run in found] == [float(v) for v in re.findall(r"^  pass_rate_2: (\S+)", text, re.M)]
    assert [run.model for run in found] == re.findall(r"^  model: (.+?)\s*$", text, re.M)
    assert found[0] == PolyglotRun("Gemini 2.0 Pro exp-02-05", "whole", 35.6, date(2025, 2, 25))
    assert newest(found) == datetime(2025, 10, 3, tzinfo=UTC)


words = st.text(st.characters(categories=["Lu", "Ll", "Nd"], max_codepoint=127), min_size=1, max_size=12)


@given(st.lists(st.tuples(words, st.floats(0.1, 100)), min_size=1, max_size=40))
def test_no_run_is_invented_or_dropped(runs):
    text = "\n".join(ROW.format(model=model, score=score) for model, score in runs)
    assert [(run.model, run.solved_percent) for run in parse(text, None)] == runs


def test_a_run_without_a_score_is_none_and_one_with_a_wrong_score_is_a_changed_format():
    assert parse("- model: a\n  edit_format: diff\n", None) == ()
    for score in ("101", "many", "-1", ".nan"):
        with pytest.raises(ValueError, match=r"outside|convert|finite"):
            parse(ROW.format(model="a", score=score), None)
    with pytest.raises(KeyError):
        parse("- model: a\n  pass_rate_2: 3\n", None)


def test_the_twin_has_the_board_of_the_world_in_either_form():
    found, known = ask(POLYGLOT), polyglot(World(1, NOW))
    assert [(f"Aider/{r.edit_format}", r.model, r.solved_percent) for r in found] == [k[:3] for k in known]
    assert ask(POLYGLOT, form="drift") == found


def test_what_is_not_the_board_is_refused():
    asked = POLYGLOT.request
    reply = fetch(World(1, NOW), asked)
    for wrong in (b"", b"404: Not Found", b"<html></html>", reply.body[:2000], b"{}"):
        with pytest.raises(SourceError):
            parse_body(POLYGLOT, asked, None, wrong)
    with pytest.raises(SourceEmpty):
        parse_body(POLYGLOT, asked, None, fetch(World(1, NOW), asked, form="empty").body)
    with pytest.raises(SourceChanged):
        parse(re.sub(r"pass_rate_2: .*", "pass_rate_2: 0.0", reply.body.decode()), None)
