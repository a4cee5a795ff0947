"""The model hub's list of models."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.desk import NOW, ask, decoded, fetch
from tools.simulated.huggingface import models
from tools.sources.huggingface import LAST_CHANGE, MODELS_LIKED_7D, newest, parse, parse_last_change
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty
from toolserver.world.model import World

ROW = {"id": "ada/tiny-7B", "author": "ada", "likes": 3, "downloads": 9, "lastModified": "2026-06-13T06:42:57.000Z"}


def test_the_first_request_expands_what_is_needed_and_the_second_nothing():
    first, second = MODELS_LIKED_7D.request
    assert first.url.count("expand%5B%5D=") == 5
    assert "sort=likes7d&direction=-1&limit=15" in first.url
    assert second.url.endswith("?sort=trendingScore&direction=-1&limit=15")


def test_recorded_models_parse_to_their_values(sample):
    listed = parse(json.loads(sample("huggingface/models-trending.json")), None)

    assert listed.by_score
    assert len(listed.models) == 15
    kimi = listed.models[0]
    assert (kimi.id, kimi.author, kimi.name) == ("moonshotai/Kimi-K3", "moonshotai", "Kimi-K3")
    assert (kimi.likes, kimi.downloads, kimi.pipeline) == (9624, 837202, "image-text-to-text")
    assert kimi.updated_at is None
    assert newest(listed) is None


def test_the_expanded_form_has_author_and_time():
    listed = parse([ROW] * 10, None)
    assert not listed.by_score
    assert listed.models[0].updated_at == datetime(2026, 6, 13, 6, 42, 57, tzinfo=UTC)
    assert listed.models[0].url == "https://huggingface.co/ada/tiny-7B"


def test_a_model_that_belongs_to_nobody_has_no_author():
    model = parse([{"id": "elder", "likes": 1}, *([ROW] * 9)], None).models[0]
    assert (model.author, model.name, model.downloads, model.pipeline) == (None, "elder", None, None)


def test_a_link_is_made_from_the_id_and_leads_nowhere_else():
    model = parse([ROW | {"id": "ada/x?y=<z>#"}, *([ROW] * 9)], None).models[0]
    assert model.url == "https://huggingface.co/ada/x%3Fy%3D%3Cz%3E%23"


@pytest.mark.parametrize(
    "body", [None, {"error": "rate limited"}, "<html>", [None] * 10, [{}] * 10, [{"id": "a"}] * 10]
)
def test_what_is_not_a_list_of_models_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        parse(body, None)


def test_fewer_than_ten_models_are_not_an_answer():
    with pytest.raises(SourceEmpty):
        parse([ROW] * 9, None)


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(1, 10**6)), min_size=10, max_size=12))
def test_parse_never_invents_or_drops_a_model(rows):
    listed = parse([{"id": identity, "likes": likes} for identity, likes in rows], None)
    assert [model.likes for model in listed.models] == [likes for _, likes in rows]


def test_the_twin_lists_the_most_liked_models_of_the_world():
    listed = ask(MODELS_LIKED_7D)
    assert [(m.id, m.likes, m.author) for m in listed.models] == [
        (m.id, m.likes, m.author) for m in models(World(1, NOW))[:15]
    ]
    assert not listed.by_score


def test_the_drifted_form_is_that_of_the_second_request_and_says_so():
    second = MODELS_LIKED_7D.request[1]
    world = World(1, NOW)
    plain = parse(decoded(fetch(world, second), second), None)

    assert ask(MODELS_LIKED_7D, form="drift") == plain
    assert plain.by_score
    assert [m.author for m in plain.models] == [m.author for m in ask(MODELS_LIKED_7D).models]


def test_fault_forms_raise_what_they_mean():
    with pytest.raises(SourceEmpty):
        ask(MODELS_LIKED_7D, form="empty")
    with pytest.raises(SourceDown):
        ask(MODELS_LIKED_7D, form="limited")


def test_a_list_in_which_no_like_is_added_stands_still():
    now, later = ask(MODELS_LIKED_7D), ask(MODELS_LIKED_7D, world=World(1, NOW + 301))
    assert MODELS_LIKED_7D.moves(now) == MODELS_LIKED_7D.moves(ask(MODELS_LIKED_7D))
    assert MODELS_LIKED_7D.moves(now) != MODELS_LIKED_7D.moves(later)


def test_the_last_change_of_the_hub_is_asked_for_in_one_row_and_is_of_now_in_the_twin():
    assert "sort=lastModified&direction=-1&limit=1&" in LAST_CHANGE.request.url
    changed = ask(LAST_CHANGE)
    assert timedelta(0) <= datetime.fromtimestamp(NOW, UTC) - changed < timedelta(minutes=1)
    assert LAST_CHANGE.newest(changed) == changed


@pytest.mark.parametrize("body", [None, [], [{}], [{"lastModified": None}], [{"lastModified": "soon"}], {"error": "x"}])
def test_a_last_change_without_a_time_is_none(body):
    with pytest.raises((SourceChanged, LookupError, TypeError, ValueError, AttributeError)):
        parse_last_change(body, None)
