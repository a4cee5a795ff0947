"""The tool for new and popular repositories."""

import functools
import json
from datetime import UTC, datetime, timedelta

import anyio
import pytest

import tools.simulated.github  # noqa: F401 - registers its routes
from tests.calls.parts import engine
from tests.served import all_tools
from tests.tools.desk import NOW, ask
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from tests.truth.stage import simulated_time
from tools.free.code_host_trending import age_days, code_host_trending, most_starred
from tools.sources.github import ACTIVE_LLM, NEW, REPOSITORIES, RepoList, RepoQuery
from toolserver.settings import UpstreamSettings
from toolserver.upstream.source import SourceEmpty, SourceError
from toolserver.world.model import ROUTES, World

SEARCH, RSS = "GitHub.search_repositories", "GitHubTrending.rss"
TIME = datetime.fromtimestamp(NOW, UTC)


async def test_repositories_come_most_starred_first_and_equal_the_world(compose):
    made = await compose(code_host_trending)

    expected = ROUTES.expectations["code-host-trending"](World(1, NOW), {})
    assert [{k: r[k] for k in ("full_name", "stars", "forks", "language")} for r in made.json] == expected
    assert len(expected) == 15
    for repo in made.json:
        assert repo["url"] == f"https://github.com/{repo['full_name']}"
        assert 1 <= repo["age_days"] <= 7
        assert repo["stars_per_day"] == pytest.approx(repo["stars"] / repo["age_days"], abs=0.1)
        assert len(repo["topics"]) <= 10
    assert not made.notes.warnings


async def test_when_github_is_down_names_remain_and_the_numbers_are_null(compose):
    made = await compose(code_host_trending, down={SEARCH})

    assert len(made.json) == 15
    numbers = ("stars", "forks", "age_days", "stars_per_day", "created_at", "language", "topics", "license")
    assert {repo[member] for repo in made.json for member in numbers} == {None}
    assert all("/" in repo["full_name"] and repo["name"] == repo["full_name"].split("/")[1] for repo in made.json)
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "degraded_fallback"]


async def test_an_incomplete_search_is_kept_and_marked(compose):
    made = await compose(code_host_trending, forms={SEARCH: "error200"})
    assert 5 <= len(made.json) <= 12
    assert [w.code for w in made.notes.warnings] == ["partial"]


@pytest.mark.parametrize("form", ["limited", "geo", "empty"])
async def test_a_refusal_or_an_empty_answer_leads_to_the_feed(compose, form):
    made = await compose(code_host_trending, forms={SEARCH: form})
    assert {n.source.name: n.status for n in made.notes.sources} == {RSS: "fallback", SEARCH: "error"}


@pytest.mark.parametrize("faults", [{"down": {"*"}}, {"forms": {SEARCH: "limited", RSS: "empty"}}])
async def test_when_nobody_answers_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(code_host_trending, **faults)


def test_forks_and_archives_are_left_out_and_nothing_else_is_no_answer():
    repos = ask(REPOSITORIES, RepoQuery(NEW, (TIME - timedelta(days=7)).date())).repos
    own = [r for r in repos if not (r.fork or r.archived)]
    assert len(own) < len(repos)
    assert [i.full_name for i in most_starred(RepoList(repos, False), TIME).items] == [r.full_name for r in own[:15]]
    with pytest.raises(SourceEmpty):
        most_starred(RepoList(tuple(r._replace(fork=True) for r in repos), False), TIME)


def test_a_repository_of_the_last_hours_counts_as_a_day_old():
    repo = ask(REPOSITORIES, RepoQuery(NEW, (TIME - timedelta(days=7)).date())).repos[0]
    assert age_days(repo._replace(created_at=TIME - timedelta(hours=1)), TIME) == 1
    assert age_days(repo._replace(created_at=TIME - timedelta(hours=36)), TIME) == 1.5


def test_a_search_that_waits_for_its_turn_is_not_overtaken_by_the_feed():
    another = RepoQuery(ACTIVE_LLM, (TIME - timedelta(days=5)).date())

    async def ask_both() -> list[str]:
        clock = LoopClock(TIME)
        upstreams = Upstreams(clock, Pages())
        async with engine(all_tools(), internet=upstreams, clock=clock, upstream=UpstreamSettings(via=VIA)) as e:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(functools.partial(e.cache.fresh, REPOSITORIES, another, sla_s=300))
                await anyio.sleep(0.1)
                outcome = await e.call("code_host_trending", {})
        return [note["code"] for note in json.loads(outcome.rendered.payload).get("warning", ())]

    with simulated_time():
        assert anyio.run(ask_both, backend_options={"loop_factory": SkippingLoop}) == []
