"""GitHub's repository search and the third-party trending feed."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.github  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.repositories import DAY, about_llms, created_since
from tools.sources import github_trending
from tools.sources.github import ACTIVE_LLM, NEW, REPOSITORIES, RepoQuery, newest, parse, request
from tools.sources.github_trending import TRENDING
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceLimited, SourceRefused
from toolserver.world.model import World

TODAY = datetime.fromtimestamp(NOW, UTC).date()
WEEK = RepoQuery(NEW, TODAY - timedelta(days=7))
ITEM = {
    "id": 7,
    "full_name": "ada/engine",
    "name": "engine",
    "owner": {"login": "ada", "type": "User"},
    "stargazers_count": 5,
    "forks_count": 1,
    "open_issues_count": 0,
    "created_at": "2026-01-02T03:04:05Z",
    "html_url": "https://github.com/ada/engine",
}


def listed(*items: object) -> dict[str, object]:
    return {"incomplete_results": False, "items": [*items, *([ITEM] * 5)]}


def test_the_search_names_its_day_and_its_cache_key_does_not():
    (get,) = request(RepoQuery(NEW, date(2026, 7, 1)), {})

    assert get.params == {"q": "created:>2026-07-01", "sort": "stars", "order": "desc", "per_page": "50"}
    assert "Authorization" not in get.headers
    assert REPOSITORIES.key(WEEK) == REPOSITORIES.key(WEEK._replace(since=date(2020, 1, 1)))
    assert REPOSITORIES.key(WEEK) != REPOSITORIES.key(RepoQuery(ACTIVE_LLM, WEEK.since))


def test_with_a_token_it_is_tried_first_and_then_left_out():
    with_token, without = request(WEEK, {"GITHUB_TOKEN": "sim-token"})

    assert with_token.headers["Authorization"] == "Bearer sim-token"
    assert "Authorization" not in without.headers
    assert with_token.params == without.params
    assert "sim-token" not in with_token.url


def test_a_recorded_answer_parses_to_its_values(sample):
    found = parse(json.loads(sample("github/search-repositories-5.json")), WEEK)

    assert not found.incomplete
    assert [r.full_name for r in found.repos][2:] == [
        "sgl-project/sglang",
        "jadore801120/attention-is-all-you-need-pytorch",
        "jessevig/bertviz",
    ]
    first = found.repos[0]
    assert (first.id, first.owner, first.name, first.owner_type) == (145553672, "fighting41love", "funNLP", "User")
    assert (first.license, first.language) == (None, "Python")
    assert len(first.description) == 200
    assert first.description.endswith("…")
    assert found.repos[2].license == "Apache-2.0"
    assert newest(found) == max(r.pushed_at for r in found.repos)


def test_the_recorded_refusal_is_a_limit(sample):
    with pytest.raises(SourceLimited):
        parse(json.loads(sample("github/error-403-rate-limit.json")), WEEK)
    with pytest.raises(SourceRefused):
        parse({"message": "Validation Failed", "errors": []}, WEEK)


@pytest.mark.parametrize("body", [None, [], "<html>", {}, {"items": None}, {"items": [None] * 5}])
def test_what_is_not_a_list_of_repositories_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        parse(body, WEEK)


@pytest.mark.parametrize("member", [k for k in ITEM if k != "owner"])
def test_a_repository_without_a_required_member_is_left_out(member):
    body = listed({k: v for k, v in ITEM.items() if k != member})
    assert len(parse(body, WEEK).repos) == len(body["items"]) - 1


def test_fewer_than_five_repositories_are_not_an_answer():
    with pytest.raises(SourceEmpty):
        parse({"items": [ITEM] * 4}, WEEK)


def test_odd_optional_members_are_null():
    odd = {"owner": None, "license": {"spdx_id": "NOASSERTION"}, "topics": ["a", None], "pushed_at": "x", "language": 1}
    repo = parse(listed(ITEM | odd), WEEK).repos[0]
    assert (repo.owner, repo.owner_type, repo.license, repo.pushed_at, repo.language) == ("ada", None, None, None, None)
    assert repo.topics == ("a",)


@pytest.mark.parametrize("change", [{"html_url": "javascript:x"}, {"full_name": "engine"}, {"stargazers_count": None}])
def test_a_repository_that_cannot_be_linked_or_counted_is_left_out(change):
    body = listed(ITEM | change)
    assert len(parse(body, WEEK).repos) == len(body["items"]) - 1


@given(st.lists(st.integers(1, 10**9), min_size=5, max_size=8))
def test_parse_never_invents_or_drops_a_repository(ids):
    body = {"items": [ITEM | {"id": identity} for identity in ids]}
    assert [repo.id for repo in parse(body, WEEK).repos] == ids


def test_the_twin_answers_both_searches_from_the_world():
    world = World(1, NOW)
    new = ask(REPOSITORIES, WEEK).repos
    midnight = NOW - NOW % DAY

    listed = [r for r in created_since(world, midnight - 6 * DAY) if not r.fork][:50]
    assert [(r.id, r.stars) for r in new] == [(r.id, r.stars) for r in listed]
    assert all(r.created_at.date() > WEEK.since for r in new)
    active = ask(REPOSITORIES, RepoQuery(ACTIVE_LLM, TODAY - timedelta(days=30))).repos
    assert [r.stars for r in active] == [r.stars for r in about_llms(world) if not r.fork][:50]
    assert all("llm" in r.topics for r in active)


def test_stars_only_ever_grow():
    before = {r.id: r.stars for r in ask(REPOSITORIES, WEEK, world=World(1, NOW - 3600)).repos}
    after = {r.id: r.stars for r in ask(REPOSITORIES, WEEK).repos}
    assert all(after[i] >= before[i] for i in before.keys() & after.keys())
    assert any(after[i] > before[i] for i in before.keys() & after.keys())


def test_fault_forms_raise_what_they_mean():
    for form, error in (("limited", SourceDown), ("geo", SourceDown), ("empty", SourceEmpty)):
        with pytest.raises(error):
            ask(REPOSITORIES, WEEK, form=form)
    with pytest.raises(SourceDown):
        ask(REPOSITORIES, WEEK, keys={"GITHUB_TOKEN": "expired"})
    assert ask(REPOSITORIES, WEEK, keys={"GITHUB_TOKEN": "sim-1"}) == ask(REPOSITORIES, WEEK, form="auth")
    assert ask(REPOSITORIES, WEEK, form="error200").incomplete


def test_the_drifted_form_is_read_like_the_usual_one_without_its_topics():
    usual = ask(REPOSITORIES, WEEK)
    assert ask(REPOSITORIES, WEEK, form="drift").repos == tuple(r._replace(topics=()) for r in usual.repos)


FEED = """<rss version="2.0"><channel><title>x</title>
<item><title> ada/engine </title><link>https://github.com/ada/engine</link></item>
<item><title>brk/r.x_y-z</title><link>https://github.com/brk/r.x_y-z</link></item></channel></rss>"""


def test_the_trending_feed_gives_names_and_links_in_its_order():
    repos = github_trending.parse(FEED.encode(), None)
    assert repos == (("ada/engine", "https://github.com/ada/engine"), ("brk/r.x_y-z", "https://github.com/brk/r.x_y-z"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>no</body></html>",
        FEED.encode()[:150],
        b'{"items": []}',
        FEED.replace("https:", "javascript:").encode(),
        b'<!DOCTYPE rss [<!ENTITY a "b">]><rss version="2.0"><channel/></rss>',
    ],
)
def test_what_is_not_a_trending_feed_is_refused(body):
    with pytest.raises(SourceChanged):
        github_trending.parse(body, None)


def test_the_twin_of_the_trending_feed_lists_new_and_old_repositories():
    repos = ask(TRENDING)
    assert len(repos) == 25
    assert len(ask(TRENDING, form="empty")) < TRENDING.least
