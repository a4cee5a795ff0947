"""Second readings of upstream bodies, without the product's code: from the bytes to what a tool must say.

They are written from what publishers document. Only requests and bodies are shared with the product.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import asin, cos, dist, radians, sin
from typing import Any
from xml.etree import ElementTree

import yaml

from tests.tools.desk import fetch, load_all_providers
from toolserver.upstream.source import Get
from toolserver.world.model import World

GITHUB = "https://api.github.com/search/repositories"
LAUNCH_LIBRARY = "https://ll.thespacedevs.com/2.3.0"
RAW = "https://raw.githubusercontent.com"
DAY_S = 86_400


def body_of(world: World, url: str, **params: str) -> bytes:
    load_all_providers()
    reply = fetch(world, Get(url, params=params))
    assert reply.status == 200
    return reply.body


def json_of(world: World, url: str, **params: str) -> Any:
    return json.loads(body_of(world, url, **params))


def new_repositories(world: World) -> list[dict[str, Any]]:
    """The most starred repositories of the past week, each with its mean stars per day of age."""
    since = datetime.fromtimestamp(world.now - 7 * DAY_S, UTC).date()
    query = f"created:>{since}"
    found = json_of(world, GITHUB, q=query, sort="stars", order="desc", per_page="30")["items"]
    own = [repo for repo in found if not repo["fork"] and not repo["archived"]]
    for repo in own:
        age = (world.now - datetime.fromisoformat(repo["created_at"]).timestamp()) / DAY_S
        repo["per_day"] = repo["stargazers_count"] / max(age, 1)
    return sorted(own, key=lambda repo: -repo["stargazers_count"])


def count_topics(repositories: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The 20 most frequent topics, of equal counts by name, each counted once in a repository."""
    counts: dict[str, int] = {}
    for repo in repositories:
        for topic in set(repo["topics"]):
            counts[topic] = counts.get(topic, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20]


AI_WORDS = """ai ml llm llms gpt rag agentic mcp claude gemini openai transformer diffusion embedding embeddings
finetuning lora inference""".split()
AI_PHRASES = """machine learning, deep learning, language model, neural network, vector database, fine tuning, prompt
engineering, computer vision, text to speech"""


def is_about_ai(repo: dict[str, Any]) -> bool:
    """Whether the name, a topic, or the description as it is shown (200 characters) has a word of the list, or words
    that begin with a phrase.
    """
    words = [rf"{word}(?![a-z0-9])" for word in AI_WORDS]
    phrases = [r"[^a-z0-9]+".join(phrase.split()) for phrase in AI_PHRASES.split(",")]
    wanted = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(words + phrases)})")
    texts = [repo["name"], (repo["description"] or "")[:200], *repo["topics"]]
    return any(wanted.search(text.lower()) for text in texts)


def people_in_space(world: World) -> dict[str, str]:
    """The craft of each human in space by name, `unknown` for who is of no station's crew."""
    roster = {"in_space": "true", "is_human": "true", "limit": "60", "mode": "normal", "format": "json"}
    asked = {"is_active": "true", "mode": "detailed", "limit": "10", "format": "json"}
    listed = json_of(world, f"{LAUNCH_LIBRARY}/astronauts/", **roster)["results"]
    crafts = {
        member["astronaut"]["id"]: expedition["spacestation"]["name"]
        for expedition in json_of(world, f"{LAUNCH_LIBRARY}/expeditions/", **asked)["results"]
        for member in expedition["crew"]
    }
    short = {"International Space Station": "ISS"}
    stations = {id_: short.get(name, name.split(" ")[0]) for id_, name in crafts.items()}
    humans = [person for person in listed if person["type"]["name"] != "Non-Human"]
    return {person["name"]: stations.get(person["id"], "unknown") for person in humans}


def volcanoes_of_the_week(world: World) -> dict[str, dict[str, Any]]:
    """Country, place and time of each volcano in the weekly report, by name."""
    root = ElementTree.fromstring(body_of(world, "https://volcano.si.edu/news/WeeklyVolcanoRSS.xml"))
    found = {}
    for item in root.iter("item"):
        title = item.findtext("title") or ""
        name, country = re.fullmatch(r"(.+?) \((.+?)\) - Report for .+", title).groups()  # type: ignore[union-attr]
        lat, lon = map(float, (item.findtext("{http://www.georss.org/georss}point") or "").split())
        at = parsedate_to_datetime(item.findtext("pubDate") or "")
        found[name] = {"country": country, "lat": lat, "lon": lon, "at": at}
    return found


def us_alert_levels(world: World) -> dict[str, tuple[str, str]]:
    """The level and the colour of each volcano in the United States that is not at its usual one, by number."""
    listed = json_of(world, "https://volcanoes.usgs.gov/hans-public/api/volcano/getElevatedVolcanoes")
    return {row["vnum"]: (row["alert_level"], row["color_code"]) for row in listed}


GDACS_KINDS = {"severeStorms": "TC", "volcanoes": "VO", "floods": "FL", "wildfires": "WF"}


def open_disasters(text: bytes) -> list[dict[str, Any]]:
    """What EONET lists that is a disaster, of another catalogue than GDACS: where it was last seen, since when."""
    found = []
    for event in json.loads(text)["events"]:
        kinds = [GDACS_KINDS[each["id"]] for each in event["categories"] if each["id"] in GDACS_KINDS]
        seen = sorted(event["geometry"], key=lambda each: datetime.fromisoformat(each["date"]))
        last, place = seen[-1], seen[-1]["coordinates"]
        while not isinstance(place[0], int | float):
            place = place[0]
        is_small = last.get("magnitudeUnit") != "acres" or (last.get("magnitudeValue") or 0) < 1000
        is_ours = any(source["id"] == "GDACS" for source in event["sources"])
        if not kinds or is_ours or (kinds[0] == "WF" and (is_small or event["title"].startswith("Prescribed"))):
            continue
        found.append(
            {
                "id": f"eonet:{event['id']}",
                "kind": kinds[0],
                "from": datetime.fromisoformat(seen[0]["date"]),
                "until": datetime.fromisoformat(last["date"]),
                "lat": place[1],
                "lon": place[0],
                "size": last.get("magnitudeValue") and f"{last['magnitudeValue']:g} {last['magnitudeUnit']}",
            }
        )
    return found


def kilometres(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The distance on a sphere of 6371 km, by the chord between two points of it."""
    points = []
    for place in (one, other):
        lat, lon = radians(place["lat"]), radians(place["lon"])
        points.append((cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)))
    return 2 * 6371 * asin(min(dist(*points) / 2, 1))


def unlisted(events: list[dict[str, Any]], listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that no row of GDACS is: of the same kind, within 200 km, and at most three days apart."""
    centres = [
        {
            "kind": row["properties"]["eventtype"],
            "from": datetime.fromisoformat(row["properties"]["fromdate"]).replace(tzinfo=UTC),
            "until": datetime.fromisoformat(row["properties"]["todate"]).replace(tzinfo=UTC),
            "lat": row["geometry"]["coordinates"][1],
            "lon": row["geometry"]["coordinates"][0],
        }
        for row in listed
        if row["geometry"]["type"] == "Point"
    ]
    gap = timedelta(days=3)
    return [
        event
        for event in events
        if not any(
            event["kind"] == each["kind"]
            and event["from"] <= each["until"] + gap
            and each["from"] <= event["until"] + gap
            and kilometres(event, each) <= 200
            for each in centres
        )
    ]


WORST = ("operational", "maintenance", "degraded", "partial_outage", "major_outage")
INDICATOR = dict(zip(("none", "maintenance", "minor", "major", "critical"), WORST, strict=True))


def page_states(world: World, hosts: dict[str, str]) -> dict[str, str]:
    """Our word for what each page of Statuspage says as a whole, by name."""
    return {
        name: INDICATOR[json_of(world, f"https://{host}/api/v2/status.json")["status"]["indicator"]]
        for name, host in hosts.items()
    }


def aws_state(world: World) -> str:
    """The worst open event: 1 informs, 2 is degraded, 3 an outage of a part; 0 is resolved."""
    events = json.loads(body_of(world, "https://health.aws.amazon.com/public/currentevents").decode("utf-16"))
    worst = max((int(event["status"]) for event in events), default=0)
    return ("operational", "operational", "degraded", "partial_outage")[worst]


def google_state(incidents: list[dict[str, Any]]) -> str:
    """The worst incident without an end: a disruption is degraded, or of high severity the outage of a part."""
    found = ["operational"]
    for incident in incidents:
        if not incident.get("end"):
            is_high = incident.get("severity") == "high"
            impact = str(incident.get("status_impact")).removeprefix("SERVICE_")
            disrupted = "partial_outage" if is_high else "degraded"
            found.append({"INFORMATION": "operational", "OUTAGE": "major_outage"}.get(impact, disrupted))
    return max(found, key=WORST.index)


def azure_state(world: World) -> str:
    """Each item is something that goes on, of unknown weight."""
    feed = body_of(world, "https://rssfeed.azure.status.microsoft/en-us/status/feed/")
    return "degraded" if b"<item>" in feed else "operational"


OPENAI_API = {"Assistants", "Audio", "Batch", "Chat Completions", "Embeddings", "Files", "Fine-tuning", "Images"}
OPENAI_API |= {"Moderations", "Realtime", "Responses"}


def openai_state(world: World) -> str:
    """The worst state of what the API consists of, not of ChatGPT."""
    listed = json_of(world, "https://status.openai.com/api/v2/summary.json")["components"]
    words = {"under_maintenance": "maintenance", "degraded_performance": "degraded"}
    states = [words.get(part["status"], part["status"]) for part in listed if part["name"] in OPENAI_API]
    return max(states, key=WORST.index)


def slack_state(world: World) -> str:
    said = json_of(world, "https://slack-status.com/api/v2.0.0/current")
    words = {"outage": "major_outage", "incident": "degraded", "maintenance": "maintenance", "notice": "operational"}
    found = [words[incident["type"]] for incident in said["active_incidents"]]
    return max(found, key=WORST.index, default="operational")


def polyglot_results(text: bytes) -> list[tuple[str, str, float]]:
    """Edit format, model and percent solved in two tries, best first."""
    runs = yaml.safe_load(text)
    rows = [(f"Aider/{run['edit_format']}", run["model"], round(float(run["pass_rate_2"]), 2)) for run in runs]
    return sorted(rows, key=lambda row: -row[2])


def verified_results(text: bytes) -> list[float]:
    """The percentages of SWE-bench Verified, best first."""
    (board,) = [board for board in json.loads(text)["leaderboards"] if board["name"] == "Verified"]
    return sorted((round(float(row["resolved"]), 2) for row in board["results"]), reverse=True)


Pairs = dict[tuple[str, str], float]


def best_of_submissions(text: bytes, board: str, harness: str | None = None) -> Pairs:
    """The best score of each harness with each model on a board of SWE-bench, without rows of several models."""
    (rows,) = [each["results"] for each in json.loads(text)["leaderboards"] if each["name"].lower() == board]
    found: Pairs = {}
    for row in rows:
        models = [tag[len("Model: ") :] for tag in row["tags"] if tag.startswith("Model: ")]
        name = harness or row["name"].split(" + ")[0].split(" (")[0].strip()
        if len(models) == 1:
            pair = (name, models[0])
            found[pair] = max(found.get(pair, 0.0), round(float(row["resolved"]), 2))
    return found


def best_of_runs(text: bytes) -> Pairs:
    """The same of the polyglot board."""
    found: Pairs = {}
    for harness, model, score in polyglot_results(text):
        found.setdefault((harness, model), score)
    return found


def combined_scores(boards: list[tuple[Pairs, float]]) -> list[tuple[str, str, float, int, float]]:
    """Harness, model, mean of the percentages of each board's best, and boards that have them, in all and as a share.

    Each board comes with its best score, whoever got it. Pairs of one board alone are left out.
    """
    found = []
    for harness, model in {pair for pairs, _ in boards for pair in pairs}:
        percents = [pairs[harness, model] / best * 100 for pairs, best in boards if (harness, model) in pairs]
        if len(percents) >= 2:
            mean = round(sum(percents) / len(percents), 1)
            found.append((harness, model, mean, len(percents), round(len(percents) / len(boards), 2)))
    return sorted(found, key=lambda row: (-row[2], row[0], row[1]))


def time_horizons(text: bytes) -> list[tuple[str, float]]:
    """Each model with the minutes of the tasks of which it solves half, longest first."""
    measured = yaml.safe_load(text)["results"]
    estimates = {name: each["metrics"].get("p50_horizon_length", {}).get("estimate") for name, each in measured.items()}
    rows = [(name, float(minutes)) for name, minutes in estimates.items() if minutes is not None]
    return sorted(rows, key=lambda row: -row[1])


POSITIVE = """surge soar rally jump gain climb rise rebound recover beat outperform upgrade bullish breakout approve
approval adopt adoption inflow profit growth strong boost buyback accumulate expand partnership milestone win optimism
upside record-high all-time-high outpace exceed top raise dividend relief rose won beaten""".split()
NEGATIVE = """plunge crash slump tumble drop fall sink slide selloff sell-off dump loss lose miss downgrade bearish
breakdown hack exploit breach lawsuit sue probe investigate fraud scam ban halt delay layoff bankrupt bankruptcy default
outflow liquidate liquidation recession warn weak fear delist tariff outage fell sank lost slid sold-off""".split()
IRREGULAR = {"rose", "won", "beaten", "fell", "sank", "lost", "slid", "sold-off"}
NEGATORS = {"no", "not", "never", "without", "fails", "denies", "despite", "ends"}


def stems_of(word: str) -> Iterator[str]:
    """The words of the list that a word may be a form of: itself, and what is left without an ending."""
    yield word
    for ending in ("s", "es", "d", "ed", "ing"):
        if word.endswith(ending) and (stem := word.removesuffix(ending)) not in IRREGULAR:
            yield stem
            yield f"{stem}e"
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]
    if word.endswith(("ies", "ied")):
        yield f"{word[:-3]}y"


def tone_of(title: str) -> float:
    """(positive - negative) / (positive + negative) words of a title; a negator up to three words before turns one."""
    words = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", title.casefold())
    signs = []
    for place, word in enumerate(words):
        turned = -1 if NEGATORS & set(words[max(0, place - 3) : place]) else 1
        for part in [word] if set(stems_of(word)) & {*POSITIVE, *NEGATIVE} else word.split("-"):
            stems = set(stems_of(part))
            signs += [turned] if stems & set(POSITIVE) else [-turned] if stems & set(NEGATIVE) else []
    return sum(signs) / len(signs) if signs else 0.0
