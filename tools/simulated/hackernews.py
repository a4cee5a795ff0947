"""Simulate Hacker News on the wire: the Firebase API and Algolia's search of the same stories."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.stories import SimStory, born_since, by_id, comments, front_page, points, rank_stories
from toolserver.world.model import Ask, Reply, World, expects, serves

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
