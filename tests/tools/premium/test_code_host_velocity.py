"""What gains stars: two searches, star counts of a day before, and the rule of what is about machine learning."""

from datetime import UTC, datetime, timedelta

import pytest

import tools.simulated.github  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, SimDesk, ask
from tests.tools.selling import sell
from tools.premium.code_host_velocity import by_language, by_topic, premium_code_host_velocity, totals
from tools.shared.repositories import ANONYMOUS, WITH_TOKEN, Searched, age_days, is_ai_ml, most_starred, remember
from tools.simulated.repositories import DAY, about_llms, created_since
from tools.sources.github import NEW, REPOSITORIES, RepoList, RepoQuery
from toolserver.context.context import TimeSeriesStore, ToolContext
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceDown, SourceError
from toolserver.world.model import World

WORLD = World(1, NOW)
AT = datetime.fromtimestamp(NOW, UTC)
SEARCH = "GitHub.search_repositories"
TOKEN = {"GITHUB_TOKEN": "sim-token"}
QUERY = RepoQuery(NEW, (AT - timedelta(days=7)).date())
LISTS = ("trending_repos", "ai_ml_repos_active_30d")


def new_ones(world):
    today = world.now - world.now % DAY
    return [r for r in created_since(world, today - 6 * DAY) if not (r.fork or r.archived)][:30]


def lively_ones(world):
    return [r for r in about_llms(world) if not (r.fork or r.archived)][:15]


def name_of(repo):
    return f"{repo.owner}/{repo.name}"


def codes(made):
    return sorted({warning.code for warning in made.notes.warnings})


# What is listed


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_both_lists_are_the_most_starred_of_the_world(compose, seed):
    world = World(seed, NOW)
    made = await compose(premium_code_host_velocity, world=world)

    for name, expected in zip(LISTS, (new_ones(world), lively_ones(world)), strict=True):
        shown = [(r["full_name"], r["stars"], r["forks"], r["open_issues"], r["language"]) for r in made.json[name]]
        assert shown == [(name_of(r), r.stars, r.forks, r.issues, r.language) for r in expected]
    assert len(made.json["ai_ml_repos_active_30d"]) == 15
    assert len(made.json["trending_repos"]) == 30
    assert made.json["window"] == {"created_within_days": 7, "active_within_days": 30}
    assert made.notes.warnings == []


async def test_a_repository_is_described_with_its_age_and_speed(compose):
    made = await compose(premium_code_host_velocity)
    for shown, repo in zip(made.json["trending_repos"], new_ones(WORLD), strict=True):
        age = max(1, (NOW - int(repo.created)) / DAY)
        assert shown["age_days"] == round(age, 1)
        assert shown["stars_per_day"] == round(repo.stars / shown["age_days"], 1)
        assert (shown["owner"], shown["owner_type"]) == (repo.owner, repo.owner_type)
        assert shown["license"] == (None if repo.licence == "NOASSERTION" else repo.licence)
        assert shown["topics"] == list(repo.topics)
        assert shown["url"] == f"https://github.com/{name_of(repo)}"
        assert shown["stars_24h"] is None
    assert {"age_days", "stars_per_day"}.isdisjoint(made.json["ai_ml_repos_active_30d"][0])
    assert all(repo["is_ai_ml"] for repo in made.json["ai_ml_repos_active_30d"])  # their topic is llm


async def test_counts_are_of_what_is_listed(compose):
    made = (await compose(premium_code_host_velocity)).json
    repos, said = made["trending_repos"], made["aggregate"]

    ai = [repo for repo in repos if repo["is_ai_ml"]]
    assert said == {
        "trending_count": len(repos),
        "total_stars_in_trending": sum(repo["stars"] for repo in repos),
        "ai_ml_in_trending_count": len(ai),
        "ai_ml_share_percent": round(100 * len(ai) / len(repos), 1),
        "ai_ml_active_30d_count": 15,
        "languages_in_trending": len({repo["language"] for repo in repos if repo["language"]}),
        "auth_used": "unauthenticated",
    }
    assert 0 < len(ai) < len(repos)
    languages = {row["language"]: (row["count"], row["total_stars"]) for row in made["by_language"]}
    for name in {repo["language"] for repo in repos}:
        mine = [repo["stars"] for repo in repos if repo["language"] == name]
        assert languages[name or "unknown"] == (len(mine), sum(mine))
    assert sum(count for count, _ in languages.values()) == len(repos)
    assert [row["count"] for row in made["by_language"]] == sorted((c for c, _ in languages.values()), reverse=True)
    topics = {row["topic"]: row["count"] for row in made["by_topic"]}
    assert topics == {topic: sum(topic in repo["topics"] for repo in repos) for topic in topics}
    assert list(topics) == sorted(topics, key=lambda topic: (-topics[topic], topic))
    assert len(topics) <= 20


# Stars of a day before


async def test_stars_of_the_last_day_are_known_once_they_were_counted_a_day_ago(compose):
    history = TimeSeriesStore()
    for hours in (-24, -23, -12, 0):
        world = WORLD.at(NOW + hours * 3600)
        made = await compose(premium_code_host_velocity, world=world, history=history)

    before = {r.id: r.stars for r in [*new_ones(WORLD.at(NOW - DAY)), *lively_ones(WORLD.at(NOW - DAY))]}
    shown = {r["full_name"]: r["stars_24h"] for name in LISTS for r in made.json[name]}
    expected = {name_of(r): r.stars - before[r.id] for r in [*new_ones(WORLD), *lively_ones(WORLD)] if r.id in before}
    assert {name: shown[name] for name in expected} == expected
    assert len(expected) > 30
    assert any(gained > 0 for gained in expected.values())
    born_since = [name_of(r) for r in new_ones(WORLD) if r.created > NOW - DAY]
    assert born_since
    assert {shown[name] for name in born_since} == {None}


@pytest.mark.parametrize(("hours", "known"), [(21, False), (22, True), (26, True), (27, False)])
async def test_a_day_before_is_between_22_and_26_hours_ago(compose, hours, known):
    history = TimeSeriesStore()
    await compose(premium_code_host_velocity, world=WORLD.at(NOW - hours * 3600), history=history)
    made = await compose(premium_code_host_velocity, history=history)
    assert any(r["stars_24h"] is not None for r in made.json["ai_ml_repos_active_30d"]) is known


def test_stars_are_counted_about_once_an_hour_and_as_of_the_search():
    listed = ask(REPOSITORIES, QUERY)
    history, repo = TimeSeriesStore(), listed.repos[0]
    for minutes, stars in ((0, 10), (30, 11), (54, 12), (56, 13), (90, 14)):
        only = RepoList((repo._replace(stars=stars),), False)
        remember(history, Searched(only, AT + timedelta(minutes=minutes), False))
    key = str(repo.id)
    assert history.last("github_stars", key) == (AT + timedelta(minutes=56), 13)
    assert history.first("github_stars", key) == (AT, 10)


# The token


async def test_the_token_is_used_where_there_is_one(compose):
    made = await compose(premium_code_host_velocity, keys=TOKEN)
    assert made.json["aggregate"]["auth_used"] == "authenticated"
    assert made.notes.warnings == []
    assert made.json["trending_repos"] == (await compose(premium_code_host_velocity)).json["trending_repos"]


async def test_a_token_that_is_refused_is_said_not_to_have_been_used(compose):
    made = await compose(premium_code_host_velocity, keys={"GITHUB_TOKEN": "expired"})
    assert made.json["aggregate"]["auth_used"] == "unauthenticated"
    assert len(made.json["ai_ml_repos_active_30d"]) == 15
    assert codes(made) == ["fallback_used"]


def test_one_source_holds_the_token_and_the_other_does_not():
    assert WITH_TOKEN.plan(QUERY, {}) is None
    assert WITH_TOKEN.plan(QUERY, TOKEN).headers["Authorization"] == "Bearer sim-token"
    assert "Authorization" not in ANONYMOUS.plan(QUERY, TOKEN).headers
    names = {source.request.__qualname__ for source in (WITH_TOKEN, ANONYMOUS, REPOSITORIES)}
    assert len(names) == 3
    assert WITH_TOKEN.name == ANONYMOUS.name == SEARCH


# When searches fail


async def test_when_both_fail_nothing_is_sold(compose):
    with pytest.raises(SourceError):
        await compose(premium_code_host_velocity, down={"*"})
    for form in ("limited", "geo", "empty"):
        with pytest.raises(UpstreamUnavailable):
            await sell(premium_code_host_velocity, forms={SEARCH: form})


class HalfDesk(SimDesk):
    """One of the two searches fails: the one that holds `lost`."""

    lost = ""

    async def fresh(self, source, query, *, sla_s):
        if self.lost in query.search:
            raise SourceDown("arranged", word="http_503")
        return await super().fresh(source, query, sla_s=sla_s)


async def half(lost):
    desk = HalfDesk(WORLD)
    desk.lost = lost
    ctx = ToolContext(desk, now=lambda: AT, sla_s=3600)
    return (await premium_code_host_velocity(ctx)).model_dump(mode="json"), ctx


async def test_a_list_whose_search_failed_is_null_with_all_that_is_counted_from_it(compose):
    whole = (await compose(premium_code_host_velocity)).json
    made, ctx = await half("created")

    assert made["trending_repos"] is made["by_language"] is made["by_topic"] is None
    assert made["ai_ml_repos_active_30d"] == whole["ai_ml_repos_active_30d"]
    counted = {"ai_ml_active_30d_count": 15, "auth_used": "unauthenticated"}
    assert made["aggregate"] == dict.fromkeys(whole["aggregate"]) | counted
    assert [(w.section, w.code) for w in ctx.notes.warnings] == [("trending_repos", "section_unavailable")]
    assert (ctx.empty, ctx.shortened_s) == (False, 60)


async def test_the_other_list_may_be_missing_as_well(compose):
    whole = (await compose(premium_code_host_velocity)).json
    made, ctx = await half("topic:llm")

    assert made["ai_ml_repos_active_30d"] is None
    assert made["aggregate"] == whole["aggregate"] | {"ai_ml_active_30d_count": None}
    assert {n: made[n] for n in ("trending_repos", "by_language", "by_topic")} == {
        n: whole[n] for n in ("trending_repos", "by_language", "by_topic")
    }
    assert [w.section for w in ctx.notes.warnings] == ["ai_ml_repos_active_30d"]


async def test_an_incomplete_search_is_kept_and_marked(compose):
    made = await compose(premium_code_host_velocity, forms={SEARCH: "error200"})
    assert {w.section for w in made.notes.warnings} == set(LISTS)
    assert codes(made) == ["partial"]
    assert 0 < len(made.json["trending_repos"]) <= 12


async def test_without_topics_lists_stay_and_the_rule_reads_what_is_left(compose):
    made = await compose(premium_code_host_velocity, forms={SEARCH: "drift"})
    assert [r["full_name"] for r in made.json["trending_repos"]] == [name_of(r) for r in new_ones(WORLD)]
    assert {tuple(r["topics"]) for name in LISTS for r in made.json[name]} == {()}
    assert made.json["by_topic"] == []


async def test_two_lists_are_two_credits_and_last_half_an_hour():
    sale = await sell(premium_code_host_velocity)
    assert sale.paid == 2
    assert sale.outcome.rendered.expires_at - sale.outcome.rendered.generated_at == 1800
    assert sale.body["_meta"]["untrusted_text"] is True
    operation = operation_of(premium_code_host_velocity)
    assert (operation.credits, operation.sla_s, operation.path) == (2, 3600, "/api/pro/code-host-velocity")


# The rules


def repo(name="x", description=None, topics=(), **more):
    [first, *_] = ask(REPOSITORIES, QUERY).repos
    return first._replace(name=name, description=description, topics=topics, **more)


@pytest.mark.parametrize(
    ("name", "description", "topics"),
    [
        ("tiny-llm", None, ()),
        ("x", "An MCP server", ()),
        ("x", "Fast RAG, in Rust", ()),
        ("x", "Large language models at home", ()),
        ("x", "Fine-tuning made easy", ()),
        ("x", None, ("machine-learning",)),
        ("x", None, ("text-to-speech",)),
        ("x", None, ("ai",)),
        ("agent-kit", "Agents for GPT", ()),
        ("x", "agentic workflows", ()),
        ("LoRA_tools", None, ()),
    ],
)
def test_words_and_phrases_of_machine_learning_are_recognised(name, description, topics):
    assert is_ai_ml(repo(name, description, topics))


@pytest.mark.parametrize(
    ("name", "description", "topics"),
    [
        ("x", None, ()),
        ("email-agent", "A mail transfer agent for agents", ("agent",)),
        ("maintain", "Claudette's fragile storage", ("html", "xml")),
        ("machine", "learning to cook", ("deep", "neural")),
        ("x", "A rage room, air traffic, html, explore", ()),
    ],
)
def test_parts_of_words_scattered_phrases_and_lone_agents_are_not(name, description, topics):
    assert not is_ai_ml(repo(name, description, topics))


def test_forks_and_archives_are_dropped_before_the_list_is_cut():
    repos = [repo(full_name=f"o/{n}", stars=100 - n, fork=n % 2 == 0, archived=n == 1) for n in range(8)]
    kept = most_starred(RepoList(tuple(reversed(repos)), False), 2)
    assert [r.full_name for r in kept] == ["o/3", "o/5"]


@pytest.mark.parametrize(("hours", "days"), [(0.5, 1), (24, 1), (36, 1.5), (160, 6.7)])
def test_a_repository_is_at_least_a_day_old(hours, days):
    assert age_days(repo(created_at=AT - timedelta(hours=hours)), AT) == days


def test_a_share_of_nothing_is_null():
    said = totals([], None, authenticated=True)
    assert (said.trending_count, said.ai_ml_share_percent, said.auth_used) == (0, None, "authenticated")
    assert by_language([]) == by_topic([]) == []
