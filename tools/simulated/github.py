"""Simulate GitHub's repository search, and the third-party trending feed, on the wire."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from tools.simulated.repositories import DAY, SimRepo, about_llms, created_since
from toolserver.world.model import Ask, Reply, World, expects, serves

API = "https://api.github.com"
DOCS = "https://docs.github.com/rest"
SAME = {  # of every repository here
    "private": False,
    "homepage": None,
    "size": 512,
    "has_issues": True,
    "disabled": False,
    "allow_forking": True,
    "is_template": False,
    "visibility": "public",
    "default_branch": "main",
}


def _list(items: list[dict[str, Any]], *, incomplete: bool = False) -> Reply:
    body = {"total_count": len(items) * 100, "incomplete_results": incomplete, "items": items}
    return Reply.json(body, content_type="application/json; charset=utf-8")


FORMS = {
    "empty": _list([]),
    "geo": Reply.json({"message": "Request forbidden by administrative rules.", "documentation_url": DOCS}, 403),
}


@serves("GitHub.search_repositories", "api.github.com", "/search/repositories", forms=FORMS)
def search(world: World, ask: Ask) -> Reply:
    """Search `created:>day` or `topic:llm`, sorted by stars."""
    token = ask.headers.get("authorization")
    if token is not None and not ask.key_ok(token.removeprefix("Bearer ")):
        return bad_credentials(world, ask)
    return _list([_item(repo) for repo in _matching(world, ask)])


def _matching(world: World, ask: Ask) -> list[SimRepo]:
    terms = dict(term.split(":", 1) for term in ask.params["q"].split())
    size = int(ask.params.get("per_page", "30"))
    if terms.get("topic") == "llm":
        return _own(about_llms(world))[:size]
    day = datetime.fromisoformat(terms["created"].lstrip(">")).replace(tzinfo=UTC).timestamp()
    return _own(created_since(world, day + DAY))[:size]  # `>` means after that day


def _own(repos: list[SimRepo]) -> list[SimRepo]:
    """Return repositories without forks: a search without `fork:true` leaves them out."""
    return [repo for repo in repos if not repo.fork]


@search.form("error200")
def incomplete(world: World, ask: Ask) -> Reply:
    """Return part of the answer, marked as incomplete: the search took too long."""
    return _list([_item(repo) for repo in _matching(world, ask)[:12]], incomplete=True)


@search.form("drift")
def bare(world: World, ask: Ask) -> Reply:
    """Return repositories without topics and visibility, with a score, in another order."""
    gone = ("topics", "visibility", "node_id")
    items = [{k: v for k, v in reversed(_item(repo).items()) if k not in gone} for repo in _matching(world, ask)]
    return _list([item | {"score": 1.0} for item in items])


@search.form("limited")
def limited(world: World, ask: Ask) -> Reply:
    headers = {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(world.now) + 60)}
    message = (
        "API rate limit exceeded for 192.0.2.1. (But here's the good news: Authenticated requests get a higher limit.)"
    )
    return Reply.json({"message": message, "documentation_url": DOCS}, 403, headers=headers)


@search.form("auth")
def bad_credentials(world: World, ask: Ask) -> Reply:
    """Refuse the token; a request without one is answered."""
    if "authorization" not in ask.headers:
        return search.handler(world, ask)
    return Reply.json({"message": "Bad credentials", "documentation_url": DOCS, "status": "401"}, 401)


def _item(repo: SimRepo) -> dict[str, Any]:
    full_name = f"{repo.owner}/{repo.name}"
    licence = repo.licence
    return SAME | {
        "id": repo.id,
        "node_id": f"R_{repo.id}",
        "name": repo.name,
        "full_name": full_name,
        "owner": {
            "login": repo.owner,
            "id": repo.id % 1000,
            "html_url": f"https://github.com/{repo.owner}",
            "type": repo.owner_type,
            "site_admin": False,
        },
        "html_url": f"https://github.com/{full_name}",
        "description": repo.description,
        "fork": repo.fork,
        "url": f"{API}/repos/{full_name}",
        "created_at": _iso(repo.created),
        "updated_at": _iso(repo.pushed),
        "pushed_at": _iso(repo.pushed),
        "git_url": f"git://github.com/{full_name}.git",
        "stargazers_count": repo.stars,
        "watchers_count": repo.stars,
        "language": repo.language,
        "forks_count": repo.forks,
        "archived": repo.archived,
        "open_issues_count": repo.issues,
        "license": licence
        and {"key": licence.lower(), "name": licence, "spdx_id": licence, "url": None, "node_id": "x"},
        "topics": list(repo.topics),
        "forks": repo.forks,
        "open_issues": repo.issues,
        "watchers": repo.stars,
        "score": 1.0,
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@serves("GitHubTrending.rss", "mshibanami.github.io", "/GitHubTrendingRSS/weekly/all.xml")
def trending(world: World, ask: Ask) -> Reply:
    """Return the feed, which is made once a day and includes older repositories."""
    midnight = world.at(world.now - world.now % DAY)
    both = zip(created_since(midnight, midnight.now - 7 * DAY), about_llms(midnight), strict=False)
    return _feed([repo for pair in both for repo in pair][:25], midnight.now)


@trending.form("empty")
def no_items(world: World, ask: Ask) -> Reply:
    return _feed([], world.now)


def _feed(repos: list[SimRepo], made_at: float) -> Reply:
    items = "".join(
        f"<item><title>{r.owner}/{r.name}</title><link>https://github.com/{r.owner}/{r.name}</link>"
        f"<description>&lt;p&gt;{r.language or ''}&lt;/p&gt;&lt;hr&gt;</description></item>"
        for r in repos
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel>'
        "<title>GitHub All Languages Weekly Trending</title>"
        "<description>Weekly Trending of All Languages in GitHub</description>"
        f"<pubDate>{format_datetime(datetime.fromtimestamp(made_at, UTC), usegmt=True)}</pubDate>"
        f"<link>http://mshibanami.github.io/GitHubTrendingRSS</link>{items}</channel></rss>"
    )
    return Reply.text(text, content_type="application/xml", last_modified=made_at)


@expects("code-host-trending")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the list that `/api/code-host-trending` must have at this instant when GitHub answers."""
    today = world.now - world.now % DAY
    repositories = _own(created_since(world, today - 6 * DAY))[:50]
    return [
        {"full_name": f"{r.owner}/{r.name}", "stars": r.stars, "forks": r.forks, "language": r.language}
        for r in repositories
        if not r.archived
    ][:15]
