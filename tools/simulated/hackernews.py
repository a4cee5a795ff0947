"""Simulate Hacker News: the Firebase API and Algolia's search of the same stories.

A story is submitted every four minutes. Stories rise, are ranked and sink."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, expects, serves

SLOT_S = 240.0
FIRST_ID = 40_000_000
INJECTED_ID = 90_000_000
HOUR = 3600.0
RANKED_S = 36 * HOUR  # older ones are on no page
SAME_S, QUIET_S = 8 * HOUR, 2 * HOUR
TOP, STIRRED_S = 15, 60.0
RISING = 5  # every fifth submission reaches the front page, so that some always enter

SUBJECTS = [
    "Postgres", "a RISC-V laptop", "the Linux kernel", "SQLite", "WebAssembly", "a home-made radio telescope",
    "Bitcoin", "the Nvidia driver", "open weights", "RSS", "the Rust borrow checker", "e-ink displays", "Ethereum",
    "Nim & Zig", "a 1987 synthesizer", "batteries", "the Tesla charger", "type inference", "undersea cables", "fonts",
]  # fmt: skip
TEMPLATES = [
    "Show HN: I rebuilt {} in a weekend",
    "What I learned from ten years of {}",
    "{} is faster than you think",
    "The quiet collapse of {}",
    "A visual introduction to {}",
    "Why we moved away from {}",
    "{} beats expectations",
    "Reverse engineering {}",
]
NAMES = ["ada", "brk", "cmoss", "dvorakian", "elmstreet", "forthright", "gnomon", "hexley", "ioctl", "jit"]


class SimStory(NamedTuple):
    """One submission. `cap`, `middle` and `spread` shape how its points grow (hours after birth)."""

    id: int
    born: float
    title: str
    url: str | None
    author: str
    kind: str  # "story" or "job"
    dead: bool
    cap: float
    middle: float
    spread: float
    talk: float  # comments per point


def story(world: World, index: int) -> SimStory:
    """Return the submission of a slot."""
    rising = index % RISING == 0
    asks = not rising and world.u("story.ask", index) < 0.1
    subject, template = world.pick("story.subject", index, SUBJECTS), world.pick("story.template", index, TEMPLATES)
    title = f"Ask HN: Who still works with {subject}?" if asks else template.format(subject)
    return SimStory(
        FIRST_ID + index,
        (index + world.u("story.at", index)) * SLOT_S,
        title[0].upper() + title[1:],
        None if asks else f"https://{world.pick('story.author', index, NAMES)}{index % 97}.example/posts/{index}",
        f"{world.pick('story.author', index, NAMES)}{index % 997}",
        "job" if not rising and world.u("story.job", index) < 0.03 else "story",
        not rising and world.u("story.dead", index) < 0.02,
        world.between("story.cap", index, 250, 900) if rising else 2 + 140 * world.u("story.cap", index) ** 3,
        world.between("story.middle", index, 0.2, 0.5) if rising else world.between("story.middle", index, 0.5, 5),
        0.12 if rising else 0.7,
        world.between("story.talk", index, 0.1, 1.1),
    )


def _injected(event: dict[str, object]) -> SimStory:
    at = float(event["at"])  # type: ignore[arg-type]
    title, url = str(event.get("title", "An injected story")), event.get("url", "https://injected.example/")
    points = float(event.get("points", 400))  # type: ignore[arg-type]
    identity = INJECTED_ID + int(at) % 1_000_000
    return SimStory(identity, at, title, str(url) if url else None, "injected", "story", False, points, -2, 0.2, 0.5)


def by_id(world: World, identity: int) -> SimStory | None:
    """Return the submission of that id if it exists by now."""
    if identity >= INJECTED_ID:
        return next((s for e in world.injected("story") if (s := _injected(e)).id == identity), None)
    submission = story(world, identity - FIRST_ID)
    return submission if 0 <= submission.born <= world.now else None


def born_since(world: World, since: float) -> list[SimStory]:
    """Return submissions after `since` and up to now, oldest first."""
    slots = range(math.floor(since / SLOT_S), math.floor(world.now / SLOT_S) + 1)
    submissions = [story(world, index) for index in slots] + [_injected(e) for e in world.injected("story", since)]
    return sorted((s for s in submissions if since < s.born <= world.now), key=lambda s: s.born)


def points(world: World, s: SimStory) -> int:
    """Return points by logistic growth from 1 to the cap."""
    hours = (world.now - s.born) / HOUR
    return 1 + int(s.cap / (1 + math.exp(-(hours - s.middle) / s.spread)))


def comments(world: World, s: SimStory) -> int:
    return int((points(world, s) - 1) * s.talk)


def rank_stories(world: World) -> list[SimStory]:
    """Return everything on any page, best first: points against age. Jobs pass through; a dead story stays for a while.

    With the value `stories.quiet` pinned to 1 the order is that of some hours ago, so nothing
    enters for eight hours; those on top still exchange places with each other, as they always
    do.
    """
    quiet = world.pinned("stories.quiet") == 1
    then = world.at((world.now - QUIET_S) // SAME_S * SAME_S) if quiet else world

    def weight(s: SimStory) -> float:
        gained = 40.0 if s.kind == "job" else points(then, s) - 1
        return float(gained / ((then.now - s.born) / HOUR + 2) ** 1.8)

    ranked = sorted(born_since(then, then.now - RANKED_S), key=weight, reverse=True)
    return _stir(ranked, world.now) if quiet else ranked


def _stir(ranked: list[SimStory], now: float) -> list[SimStory]:
    """Return the same stories with two neighbours on top exchanged, others every minute."""
    first = int(now // STIRRED_S) % (TOP - 1)
    return [*ranked[:first], *reversed(ranked[first : first + 2]), *ranked[first + 2 :]]


def front_page(world: World, count: int = 50) -> list[SimStory]:
    """Return the first page: stories and jobs, none of them dead."""
    return [s for s in rank_stories(world) if not s.dead][:count]


FIREBASE, ALGOLIA = "hacker-news.firebaseio.com", "hn.algolia.com"
PAGES = 500  # ids in topstories

TOP_IDS_FORMS = {
    "empty": Reply.json([]),
    # as for a path that does not exist
    "error200": Reply.json(None),
}


@serves("HackerNews.top_ids", FIREBASE, "/v0/topstories.json", forms=TOP_IDS_FORMS)
def top_ids(world: World, ask: Ask) -> Reply:
    return Reply.json([s.id for s in rank_stories(world)][:PAGES], content_type="application/json; charset=utf-8")


@serves("HackerNews.item", FIREBASE, "/v0/item/{id}.json", forms={"empty": Reply.json(None)})
def item(world: World, ask: Ask) -> Reply:
    identity = ask.parts["id"]
    submission = by_id(world, int(identity)) if identity.isdigit() else None
    return Reply.json(
        _firebase(world, submission) if submission else None, content_type="application/json; charset=utf-8"
    )


def _firebase(world: World, s: SimStory) -> dict[str, Any]:
    if s.dead:
        return {"deleted": True, "id": s.id, "time": int(s.born), "type": s.kind}
    body: dict[str, Any] = {"by": s.author, "id": s.id, "time": int(s.born), "title": s.title, "type": s.kind}
    body["score"] = 1 if s.kind == "job" else points(world, s)
    if s.kind == "story":
        body["descendants"] = comments(world, s)
    if s.kind == "story" and body["descendants"]:
        body["kids"] = [s.id + 1000 + i for i in range(min(body["descendants"], 20))]
    return body | ({"url": s.url} if s.url else {"text": "What do you use it for?<p>I&#x27;d like to know."})


@serves("HackerNewsAlgolia.front_page", ALGOLIA, "/api/v1/search")
def search(world: World, ask: Ask) -> Reply:
    """Return the front page; the order of the answer differs from that of the page."""
    by_id_down = sorted(front_page(world), key=lambda s: s.id, reverse=True)
    return _hits([_hit(world, s, on_page=True) for s in by_id_down], ask)


@search.form("empty")
def no_hits(world: World, ask: Ask) -> Reply:
    return _hits([], ask)


@search.form("drift")
def other_types(world: World, ask: Ask) -> Reply:
    """Return numbers as strings and the id as a number; no tags, no highlights."""
    hits = []
    for s in (s for s in front_page(world) if s.kind == "story"):
        hit = _hit(world, s, on_page=True)
        hit |= {"objectID": s.id, "points": str(hit["points"]), "num_comments": str(hit["num_comments"])}
        hits.append({k: v for k, v in hit.items() if not k.startswith("_")})
    return _hits(hits, ask)


@serves("HackerNewsAlgolia.stories_24h", ALGOLIA, "/api/v1/search_by_date")
def search_by_date(world: World, ask: Ask) -> Reply:
    floors = dict(f.split(">", 1) for f in ask.params.get("numericFilters", "").split(",") if f)
    since, least = int(floors.get("created_at_i", world.now - 86400)), int(floors.get("points", "=0").lstrip("="))
    stories = [s for s in reversed(born_since(world, since)) if s.kind == "story" and not s.dead]
    return _hits([_hit(world, s) for s in stories if points(world, s) >= least], ask)


@search_by_date.form("empty")
def no_stories(world: World, ask: Ask) -> Reply:
    return _hits([], ask)


def _hits(hits: list[dict[str, Any]], ask: Ask) -> Reply:
    size = int(ask.params.get("hitsPerPage", "20"))
    return Reply.json(
        {
            "exhaustive": {"nbHits": False, "typo": True},
            "exhaustiveNbHits": False,
            "exhaustiveTypo": True,
            "hits": hits[:size],
            "hitsPerPage": size,
            "nbHits": len(hits),
            "nbPages": -(-len(hits) // size),
            "page": 0,
            "params": f"{ask.query}&advancedSyntax=true&analyticsTags=backend",
            "processingTimeMS": 3,
            "processingTimingsMS": {"_request": {"queue": 1, "roundTrip": 18}, "total": 4},
            "query": "",
            "serverTimeMS": 6,
        }
    )


def _hit(world: World, s: SimStory, *, on_page: bool = False) -> dict[str, Any]:
    job = s.kind == "job"
    highlights = {"author": s.author, "title": s.title} | ({"url": s.url} if s.url else {})
    hit: dict[str, Any] = {
        "_highlightResult": {k: {"matchLevel": "none", "matchedWords": [], "value": v} for k, v in highlights.items()},
        "_tags": [s.kind, f"author_{s.author}", f"story_{s.id}"] + (["front_page"] if on_page else []),
        "author": s.author,
        "children": [s.id + 1000 + i for i in range(min(comments(world, s), 20))],
        "created_at": _iso(s.born),
        "created_at_i": int(s.born),
        "num_comments": None if job else comments(world, s),
        "objectID": str(s.id),
        "points": None if job else points(world, s),
        "story_id": s.id,
        "title": s.title,
        "updated_at": _iso(world.now - 60),
    }
    return hit | ({"url": s.url} if s.url else {"story_text": "What do you use it for?"})


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@expects("tech-news")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the stories that `/api/tech-news` must list at this instant when search and page answer."""
    stories = [s for s in front_page(world) if s.kind == "story"][:30]
    return [
        {"rank": rank, "id": s.id, "title": s.title, "score": points(world, s), "comments": comments(world, s)}
        for rank, s in enumerate(stories, 1)
    ]
