"""What tools make of bodies, recomputed by a second reading that shares no code with the first."""

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tests.served import all_tools
from tests.tools.desk import NOW, compose
from tests.truth import readings
from tests.truth.stage import world_of
from tools.free.disaster_alerts import from_eonet
from tools.free.harnesses import bash_only, combine, polyglot, terminal_bench, verified_board
from tools.shared.disasters import only_in_eonet
from tools.shared.repositories import is_ai_ml
from tools.shared.sentiment import score
from tools.shared.status import from_google_cloud
from tools.sources import aider, gdacs, swebench
from tools.sources.eonet import EVENTS
from tools.sources.github import REPOSITORIES, Repo
from tools.sources.google_cloud import GOOGLE_CLOUD_INCIDENTS
from toolserver.core.metrics import Usage
from toolserver.world.model import World

ROOT = Path(__file__).parents[2]
WORLDS = [World(seed, NOW + 3600 * hours) for seed, hours in ((1, 0), (2, 31.5), (3, 210))]
PAGES = {
    "GitHub": "www.githubstatus.com",
    "Cloudflare": "www.cloudflarestatus.com",
    "Anthropic": "status.claude.com",
    "Atlassian": "status.atlassian.com",
    "Stripe": "www.stripestatus.com",
    "Zoom": "www.zoomstatus.com",
    "Vercel": "www.vercel-status.com",
    "Discord": "discordstatus.com",
    "Reddit": "www.redditstatus.com",
    "Datadog": "status.datadoghq.com",
}


def tool(name):
    return all_tools()[name].function


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"seed {world.seed}")
async def test_stars_a_day_and_counts_of_repositories(world):
    said = (await compose(tool("premium_code_host_velocity"), world=world)).json
    true = readings.new_repositories(world)
    rows = said["trending_repos"]
    assert [row["stars"] for row in rows] == [repo["stargazers_count"] for repo in true]
    rates = {repo["full_name"]: repo["per_day"] for repo in true}
    assert {row["full_name"]: row["stars_per_day"] for row in rows} == pytest.approx(rates, rel=0.05, abs=0.1)
    languages = Counter(repo["language"] or "unknown" for repo in true)
    assert {row["language"]: row["count"] for row in said["by_language"]} == dict(languages)
    assert [(row["topic"], row["count"]) for row in said["by_topic"]] == readings.count_topics(true)
    about_ai = {repo["full_name"]: readings.is_about_ai(repo) for repo in true}
    assert {row["full_name"]: row["is_ai_ml"] for row in rows} == about_ai
    assert set(about_ai.values()) == {True, False}
    assert said["aggregate"]["ai_ml_in_trending_count"] == sum(about_ai.values())
    assert said["aggregate"]["ai_ml_share_percent"] == round(sum(about_ai.values()) / len(true) * 100, 1)
    assert said["aggregate"]["total_stars_in_trending"] == sum(repo["stargazers_count"] for repo in true)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"seed {world.seed}")
async def test_who_is_in_space_and_on_which_station(world):
    said = (await compose(tool("humans_in_space"), world=world)).json
    assert {person["name"]: person["craft"] for person in said["people"]} == readings.people_in_space(world)
    assert said["count"] == len(readings.people_in_space(world))


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"seed {world.seed}")
async def test_the_volcanoes_of_the_week_and_the_levels_of_those_in_the_united_states(world):
    said = (await compose(tool("volcanoes"), world=world)).json
    true = readings.volcanoes_of_the_week(world)
    reported = {row["name"]: row for row in said if row["source"] == "Smithsonian GVP"}
    assert reported.keys() == true.keys()
    for name, row in true.items():
        assert (reported[name]["country"], reported[name]["lat"], reported[name]["lon"]) == (
            row["country"],
            pytest.approx(row["lat"], abs=1e-4),
            pytest.approx(row["lon"], abs=1e-4),
        )
        assert datetime.fromisoformat(reported[name]["published_at"]) == row["at"]
    levels = {row["vnum"]: (row["us_alert_level"], row["us_color_code"]) for row in said if row["us_alert_level"]}
    assert levels == readings.us_alert_levels(world)


@pytest.mark.parametrize("hour", [0, 75, 81, 147, 222, 291, 342])
async def test_the_states_of_services(hour):
    """Each hour has other outages: of pages, of Slack, of the clouds. All fifteen are read."""
    world = world_of("busy", NOW + 3600 * hour)
    said = {row["name"]: row["status"] for row in (await compose(tool("service_status"), world=world)).json}
    true = readings.page_states(world, PAGES) | {"AWS": readings.aws_state(world), "Slack": readings.slack_state(world)}
    history = readings.json_of(world, "https://status.cloud.google.com/incidents.json")
    true |= {"Google Cloud": readings.google_state(history), "Azure": readings.azure_state(world)}
    true["OpenAI"] = readings.openai_state(world)
    assert said == true
    assert set(true.values()) > {"operational"}


@pytest.mark.parametrize("world", WORLDS[:1], ids=lambda world: f"seed {world.seed}")
async def test_the_boards_of_coding_agents(world):
    said = (await compose(tool("harnesses"), {"limit": 200}, world=world)).json
    boards = {board["id"]: board["results"] for board in said["benchmarks"]}
    polyglot = readings.body_of(
        world, f"{readings.RAW}/Aider-AI/aider/main/aider/website/_data/polyglot_leaderboard.yml"
    )
    swe_bench = readings.body_of(world, f"{readings.RAW}/SWE-bench/swe-bench.github.io/master/data/leaderboards.json")
    rows = [(row["harness"], row["model"], row["score"]) for row in boards["aider_polyglot"]]
    assert sorted(rows) == sorted(readings.polyglot_results(polyglot))
    horizons = readings.body_of(world, "https://metr.org/assets/benchmark_results_1_1.yaml")
    minutes = [(row["model"], row["score"]) for row in boards["metr_time_horizon"]]
    assert [name for name, _ in minutes] == [name for name, _ in readings.time_horizons(horizons)]
    assert dict(minutes) == pytest.approx(dict(readings.time_horizons(horizons)), abs=0.01)
    scores = [row["score"] for row in boards["swe_bench_verified"]]
    assert scores == sorted(scores, reverse=True) == readings.verified_results(swe_bench)


@pytest.mark.parametrize("world", WORLDS[:1], ids=lambda world: f"seed {world.seed}")
async def test_the_combined_scores_of_coding_agents(world):
    said = (await compose(tool("harnesses"), {"limit": 200, "view": "combined"}, world=world)).json["leaderboard"]
    polyglot = readings.body_of(
        world, f"{readings.RAW}/Aider-AI/aider/main/aider/website/_data/polyglot_leaderboard.yml"
    )
    swe_bench = readings.body_of(world, f"{readings.RAW}/SWE-bench/swe-bench.github.io/master/data/leaderboards.json")
    true = combined_of(swe_bench, polyglot)
    assert [rows_of(row) for row in said] == true
    assert len(true) >= 2


def rows_of(row):
    return (row["harness"], row["model"], row["combined_score"], row["benchmarks"], row["coverage"])


def combined_of(swe_bench, polyglot):
    """Of the two boards of SWE-bench, of the polyglot one, and of the copy that is shipped."""
    shipped = json.loads((ROOT / "tools/shared/data/terminal_bench.json").read_text(encoding="utf-8"))["results"]
    listed = {board["name"].lower(): board["results"] for board in json.loads(swe_bench)["leaderboards"]}
    boards = []
    for name, harness in (("verified", None), ("bash-only", "mini-SWE-agent")):
        best = max(round(float(row["resolved"]), 2) for row in listed[name])
        boards.append((readings.best_of_submissions(swe_bench, name, harness), best))
    boards.append((readings.best_of_runs(polyglot), readings.polyglot_results(polyglot)[0][2]))
    boards.append(({(row["harness"], row["model"]): row["score"] for row in shipped}, shipped[0]["score"]))
    return readings.combined_scores(boards)


def test_the_combined_scores_of_recorded_boards(sample):
    text, runs = (
        sample("harnesses/swebench-leaderboards-2025-11.json"),
        sample("harnesses/aider-polyglot_leaderboard.yml"),
    )
    boards = swebench.LEADERBOARDS.parse(json.loads(text), None)
    day = date(2026, 11, 21)
    made = [verified_board(boards.verified, day), bash_only(boards.bash_only, day)]
    made += [polyglot(aider.POLYGLOT.parse(runs.decode(), None), day), terminal_bench()]
    assert [rows_of(row.model_dump()) for row in combine(made)] == combined_of(text, runs)


@pytest.mark.parametrize("scenario", ["normal", "quiet", "busy"])
async def test_the_disasters_that_only_nasa_lists(scenario):
    world = world_of(scenario, NOW)
    today, search = (
        datetime.fromtimestamp(NOW, UTC).date(),
        "https://www.gdacs.org/gdacsapi/api/events/geteventlist/SEARCH",
    )
    listed = []
    for kinds, colours, days in (("EQ;TC;FL;VO;WF;DR", "Orange;Red", 30), ("TC;FL;VO;WF;DR", "Green", 5)):
        asked = {"eventlist": kinds, "alertlevel": colours, "fromdate": str(today - timedelta(days=days))}
        listed += readings.json_of(world, search, **asked, todate=str(today))["features"]
    body = readings.body_of(world, "https://eonet.gsfc.nasa.gov/api/v3/events", status="open", days="20")
    true = readings.unlisted(readings.open_disasters(body), listed)
    said = (await compose(tool("disaster_alerts"), world=world)).json
    rows = [row for row in said if row["source"] == "NASA EONET"]
    true = sorted(true, key=lambda row: row["from"], reverse=True)[: len(rows)]
    check_disasters(rows, true)
    assert rows


def check_disasters(rows, true):
    assert [row["id"] for row in rows] == [event["id"] for event in true]
    assert [row["severity_text"] for row in rows] == [event["size"] for event in true]
    assert [datetime.fromisoformat(row["started_at"]) for row in rows] == [event["from"] for event in true]
    for row, event in zip(rows, true, strict=True):
        assert (row["lat"], row["lon"]) == pytest.approx((event["lat"], event["lon"]), abs=1e-4)


def test_recorded_disasters_that_only_nasa_lists(sample):
    text, listed = (
        sample("nasa-eonet/events-v3-2026-07.json"),
        json.loads(sample("gdacs/geteventlist-MAP-2026-07-trimmed.json")),
    )
    events = EVENTS.parse(json.loads(text), None)
    disasters = gdacs.parse(listed, None)
    rows = [from_eonet(kind, event).model_dump(mode="json") for kind, event in only_in_eonet(events, disasters)]
    check_disasters(rows, readings.unlisted(readings.open_disasters(text), listed["features"]))
    assert rows


def test_recorded_repositories_about_ai(sample):
    found = json.loads(sample("github/search-repositories-5.json"))
    read = REPOSITORIES.parse(found, None).repos
    assert [is_ai_ml(repo) for repo in read] == [readings.is_about_ai(repo) for repo in found["items"]]


REPO = Repo(
    id=1,
    full_name="a/x",
    name="x",
    owner="a",
    owner_type="User",
    description=None,
    language=None,
    stars=1,
    forks=0,
    open_issues=0,
    topics=(),
    license=None,
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
    pushed_at=None,
    url="https://github.com/a/x",
    archived=False,
    fork=False,
)
NAMED = {
    "llm-server": True,
    "ollama": False,
    "email": False,
    "agent": False,
    "agents of machine-learning": True,
    "Deep Learnings": True,
    "redeep learning": False,
    "RAG_bot": True,
    "storage": False,
    "text  to speech": True,
    "gpt4": False,
    "MCP": True,
    "neural, network": True,
}


@pytest.mark.parametrize(("name", "is_ai"), NAMED.items())
def test_words_about_ai(name, is_ai):
    for title, description in ((name, None), ("x", name)):
        assert readings.is_about_ai({"name": title, "description": description, "topics": []}) is is_ai
        assert is_ai_ml(REPO._replace(name=title, description=description)) is is_ai


def test_each_recorded_incident_of_google_cloud_as_if_it_went_on(sample):
    history = json.loads(sample("google-cloud-status/incidents-2026-07.json"))
    assert readings.google_state(history) == said_of_google(history)
    for incident in history:
        alone = [{name: value for name, value in incident.items() if name != "end"}, *history]
        assert said_of_google(alone) == readings.google_state(alone), incident["id"]


def said_of_google(history):
    return from_google_cloud(GOOGLE_CLOUD_INCIDENTS.parse(history, None)).status


SAID = (
    "Bitcoin surges to record-high as ETF inflows beat outflows",
    "Nvidia shares plunge: no relief, analysts warn of weak growth",
    "Tesla denies recall probe; stock jumps",
    "Coinbase wins approval despite lawsuit, sued by rivals",
    "Market ends slide without losses",
    "Crypto-crash fears: investors dumping, banks halting withdrawals",
    "Nothing to see here",
    "Apple topped estimates, Amazon missed; tariffs delayed",
)


def titles_of(world):
    """The titles of two feeds of headlines, as they are sent."""
    stories = readings.json_of(world, "https://hn.algolia.com/api/v1/search", tags="front_page", hitsPerPage="50")
    yield from (hit["title"] for hit in stories["hits"] if hit.get("title"))
    feed = ElementTree.fromstring(readings.body_of(world, "https://www.coindesk.com/arc/outboundfeeds/rss/"))
    yield from (item.findtext("title") or "" for item in feed.iter("item"))


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"seed {world.seed}")
def test_the_tone_of_every_headline(world):
    titles = [*SAID, *titles_of(world)]
    scores = {title: score(title) for title in titles}
    assert scores == pytest.approx({title: readings.tone_of(title) for title in titles})
    assert len(set(scores.values())) >= 4


def test_the_tone_of_recorded_headlines(sample):
    stories = json.loads(sample("hn/algolia-search-30.json"))["hits"]
    news = ElementTree.fromstring(sample("news-rss/bbc-front-page.xml")).iter("item")
    titles = [*(hit["title"] for hit in stories), *(item.findtext("title") or "" for item in news)]
    scores = {title: score(title) for title in titles}
    assert scores == pytest.approx({title: readings.tone_of(title) for title in titles})
    assert len(titles) > 50


def test_recorded_boards_of_coding_agents(sample):
    runs = aider.POLYGLOT.parse(sample("harnesses/aider-polyglot_leaderboard.yml").decode(), None)
    shown = [(row.harness, row.model, row.score) for row in polyglot(runs, date(2026, 11, 21)).shown.results]
    assert sorted(shown) == sorted(readings.polyglot_results(sample("harnesses/aider-polyglot_leaderboard.yml")))
    text = sample("harnesses/swebench-leaderboards-2025-11.json")
    boards = swebench.LEADERBOARDS.parse(json.loads(text), None)
    scores = [row.score for row in verified_board(boards.verified, date(2026, 11, 21)).shown.results]
    assert scores == readings.verified_results(text)


AGENTS = ("claude-code/2.0", "curl/8.5", "python-httpx/0.28", "curl/8.5")


async def test_who_called_this_service():
    """Calls of the past day count and older ones do not: the hours of a whole day and a part of one."""
    usage, true = Usage(lambda: datetime.fromtimestamp(NOW, UTC)), Counter()
    for place, hours in enumerate((40, 26, 22.5, 9, 3, 1, 0.2)):
        agent = AGENTS[place % len(AGENTS)]
        usage.count(agent, f"tool_{place}", 200, "free", NOW - 3600 * hours)
        true[agent] += hours < 24
    said = (await compose(tool("ai_stats"), host=SimpleNamespace(usage=usage))).json
    assert said["total_hits"] == sum(true.values())
    assert sorted(row["hits"] for row in said["agents"]) == sorted((+true).values())
    assert [row["endpoint"] for row in said["recent_calls"]] == [f"tool_{place}" for place in reversed(range(7))]
