"""Search GitHub's repositories (REST, no key; GITHUB_TOKEN raises the budget).

https://docs.github.com/en/rest/search/search#search-repositories
"""

from datetime import date, datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, number, optional, positive, web_url
from tools.sources.hosts import GITHUB, HOUR
from toolserver import (
    Gauge,
    Get,
    Keys,
    Licence,
    Source,
    SourceChanged,
    SourceEmpty,
    SourceLimited,
    SourceRefused,
    read_rows,
)

SEARCH = "https://api.github.com/search/repositories"
LICENCE = Licence(
    "attribution", "GitHub", "https://docs.github.com/en/site-policy/github-terms/github-terms-of-service"
)
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
DESCRIPTION, TOPIC = 200, 50  # maximum lengths, in characters
LEAST = 5
TYPICAL, NEW_FOR = 5, timedelta(days=30)

NEW = "created:>{since}"
ACTIVE_LLM = "topic:llm pushed:>{since} stars:>50"


class RepoQuery(NamedTuple):
    """The most starred repositories of a search whose text names a day (`NEW`, `ACTIVE_LLM`)."""

    search: str
    since: date
    limit: int = 50  # more than are shown: forks and archived ones are left out


class Repo(NamedTuple):
    """One repository. `license` is an SPDX identifier, None when there is none or GitHub cannot determine it."""

    id: int
    full_name: str
    name: str
    owner: str
    owner_type: str | None
    description: str | None
    language: str | None
    stars: int
    forks: int
    open_issues: int
    topics: tuple[str, ...]
    license: str | None
    created_at: datetime
    pushed_at: datetime | None
    url: str
    archived: bool
    fork: bool


class RepoList(NamedTuple):
    """Repositories in the order of the answer; `incomplete` when GitHub stopped searching before the end."""

    repos: tuple[Repo, ...]
    incomplete: bool


def request(query: RepoQuery, keys: Keys) -> list[Get]:
    """Return the request with the token, and one without it in case the token is refused."""
    params = {
        "q": query.search.format(since=query.since.isoformat()),
        "sort": "stars",
        "order": "desc",
        "per_page": str(query.limit),
    }
    token = keys.get("GITHUB_TOKEN")
    headers = [{"Authorization": f"Bearer {token}"}, {}] if token else [{}]
    return [Get(SEARCH, params=params, headers=HEADERS | more) for more in headers]


def parse(body: Any, query: RepoQuery) -> RepoList:
    """Return every repository of the answer."""
    if "items" not in body:
        raise _refusal(str(body["message"]))
    if len(body["items"]) < LEAST:
        raise SourceEmpty(f"{len(body['items'])} repositories")
    repos = read_rows(body["items"], _repo)
    if not any(repo.stars for repo in repos):
        raise SourceChanged("no repository has stars")
    return RepoList(repos, body.get("incomplete_results") is True)


def _refusal(message: str) -> SourceLimited | SourceRefused:
    """Return the error for a body without repositories, which usually means too many searches."""
    limited = "rate limit" in message.lower()
    return SourceLimited("search limit") if limited else SourceRefused(clean(message, 80))


def _repo(item: dict[str, Any]) -> Repo:
    owner = item["owner"] or {}
    full_name, url = clean(item["full_name"], NAME), web_url(item["html_url"])
    if "/" not in full_name or url is None:
        raise SourceChanged(f"full_name is {full_name!r:.60}")
    return Repo(
        id=int(positive(item["id"])),
        full_name=full_name,
        name=clean(item["name"], NAME),
        owner=full_name.split("/", 1)[0],
        owner_type=clean_or_none(owner.get("type"), 30),
        description=clean_or_none(item.get("description"), DESCRIPTION),
        language=clean_or_none(item.get("language"), 60),
        stars=int(number(item["stargazers_count"])),
        forks=int(number(item["forks_count"])),
        open_issues=int(number(item["open_issues_count"])),
        topics=tuple(clean(topic, TOPIC) for topic in item.get("topics") or () if isinstance(topic, str)),
        license=_licence(item.get("license")),
        created_at=from_iso(item["created_at"]),
        pushed_at=optional(from_iso, item.get("pushed_at")),
        url=url,
        archived=bool(item.get("archived")),
        fork=bool(item.get("fork")),
    )


def _licence(licence: Any) -> str | None:
    name = clean_or_none(licence.get("spdx_id"), 40) if isinstance(licence, dict) else None
    return None if name == "NOASSERTION" else name


def newest(listed: RepoList) -> datetime | None:
    return max(map(newest_of, listed.repos), default=None)


def _typical_stars(listed: RepoList) -> dict[str, float]:
    """Return the median stars of the first five, separately for new repositories and for old ones."""
    first = listed.repos[:TYPICAL]
    is_new = all(newest_of(repo) - repo.created_at < NEW_FOR for repo in first)
    return {"new_stars" if is_new else "active_stars": median(repo.stars for repo in first)}


def newest_of(repo: Repo) -> datetime:
    return repo.pushed_at or repo.created_at


REPOSITORIES = Source(
    "GitHub.search_repositories",
    request,
    parse,
    licence=LICENCE,
    hosts=GITHUB,
    fresh_s=300,
    timeout_s=12,
    conditional=True,
    newest=newest,
    newest_max_s=18 * HOUR,
    gauge=Gauge(_typical_stars, 0.45),
    key=lambda query: (query.search, query.limit),  # the day moves with the clock, its meaning stays the same
    untrusted=True,
    probe=lambda now: RepoQuery(NEW, now.date() - timedelta(days=7)),
)
