"""GET /api/code-host-trending."""

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, RootModel

from tools.shared.repositories import ANONYMOUS, PATIENCE_S, WITH_TOKEN, search_fallbacks
from tools.sources.github import NEW, Repo, RepoList, RepoQuery
from tools.sources.github_trending import TRENDING, TrendingRepo
from toolserver import (
    CardValue,
    Fallback,
    Payload,
    Picture,
    SourceEmpty,
    Timestamp,
    ToolContext,
    convert_fallback,
    delay_second,
    tool,
    up_to,
    via,
)

SHOWN = 15
NAMES_ONLY = (
    "The feed has names only; not known are description, language, stars, forks, topics, license, owner_type,"
    " created_at, age_days, stars_per_day."
)
TOPICS = 10
DAYS = 7


class RepoItem(Payload):
    name: str = Field(description="Name without the owner")
    full_name: str = Field(description="owner/name")
    description: str | None = Field(description="The owner's description, cut at 200 characters; null: none")
    url: str = Field(description="Page of the repository on GitHub")
    language: str | None = Field(description="Language that GitHub finds most of; null: none")
    stars: int | None = Field(description="Stars in all; null from the feed")
    forks: int | None = Field(description="Forks in all; null from the feed")
    topics: list[str] | None = Field(
        max_length=TOPICS, description="Topics that the owner chose, at most 10; null from the feed"
    )
    license: str | None = Field(description="SPDX identifier; null: none, not recognised, or from the feed")
    owner_type: str | None = Field(description="User or Organization; null: not given")
    created_at: Timestamp | None = Field(description="When it was created; null from the feed")
    age_days: float | None = Field(description="Days since it was created, at least 1; null from the feed")
    stars_per_day: float | None = Field(description="Stars by days of age: a mean over its life; null from the feed")


class CodeHostTrending(RootModel[Annotated[list[RepoItem], Field(max_length=SHOWN, description="Most stars first")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


class TrendingList(NamedTuple):
    """The result of one of the two sources."""

    items: list[RepoItem]
    incomplete: bool = False
    names_only: bool = False


@tool(
    path="/api/code-host-trending",
    title="Trending repositories",
    search_hint="trending github repos repositories this week popular new projects stars",
    ttl_s=300,
    sources=(WITH_TOKEN, ANONYMOUS, TRENDING),
    headline=CardValue("0.stars_per_day", "stars/day", "{0.full_name}", is_series=False),
    pictures=(Picture("bars", "Stars a day", values=("stars_per_day",), label="full_name"),),
)
async def code_host_trending(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> CodeHostTrending:
    """The GitHub repositories created in the past 7 days that have the most stars, with language, topics, licence and
    stars per day. Use it for "what is new and popular on GitHub?".

    Shape: at most 15; forks and archived repositories are left out. Everything but names is null when only the
    trending feed answers, which also lists older repositories.
    Source: GitHub search, refreshed every 5 minutes; the GitHubTrendingRSS feed when it is down.
    """
    trending_list = await ctx.first("data", *trending(ctx.now))
    if trending_list.incomplete:
        ctx.warn("data", "partial", "GitHub stopped before its search was complete.", ANONYMOUS.name)
    if trending_list.names_only:
        ctx.warn("data", "degraded_fallback", NAMES_ONLY, TRENDING.name)
    return CodeHostTrending(ctx.page(trending_list.items, limit))


def trending(now: datetime) -> tuple[Fallback[TrendingList], ...]:
    """Return the searches that other tools share, with the token and without; then the feed, which waits for them."""
    query = RepoQuery(NEW, (now - timedelta(days=DAYS)).date())
    searches = (
        convert_fallback(search, lambda searched: most_starred(searched.listed, now))
        for search in search_fallbacks(query)
    )
    with_token, anonymous = searches
    return with_token, *delay_second(anonymous, via(TRENDING, None, names_only), PATIENCE_S)


def most_starred(listed: RepoList, now: datetime) -> TrendingList:
    """Return repositories that are neither forks nor archived, most stars first. Raises SourceEmpty for none."""
    own = [repo for repo in listed.repos if not (repo.fork or repo.archived)]
    if not own:
        raise SourceEmpty("nothing but forks and archives")
    best = sorted(own, key=lambda repo: repo.stars, reverse=True)[:SHOWN]
    return TrendingList([shown(repo, now) for repo in best], incomplete=listed.incomplete)


def names_only(listed: tuple[TrendingRepo, ...]) -> TrendingList:
    """Return names and links in the order of the feed, without other fields."""
    return TrendingList([_named(repo) for repo in listed[:SHOWN]], names_only=True)


def age_days(repo: Repo, now: datetime) -> float:
    """Return the days since creation, at least one, so that the first hours do not inflate a daily rate."""
    return round(max(1.0, (now - repo.created_at).total_seconds() / 86400), 1)


def shown(repo: Repo, now: datetime) -> RepoItem:
    age = age_days(repo, now)
    return RepoItem(
        name=repo.name,
        full_name=repo.full_name,
        description=repo.description,
        url=repo.url,
        language=repo.language,
        stars=repo.stars,
        forks=repo.forks,
        topics=list(repo.topics[:TOPICS]),
        license=repo.license,
        owner_type=repo.owner_type,
        created_at=repo.created_at,
        age_days=age,
        stars_per_day=round(repo.stars / age, 1),
    )


def _named(repo: TrendingRepo) -> RepoItem:
    return RepoItem(
        name=repo.full_name.split("/", 1)[1],
        full_name=repo.full_name,
        description=None,
        url=repo.url,
        language=None,
        stars=None,
        forks=None,
        topics=None,
        license=None,
        owner_type=None,
        created_at=None,
        age_days=None,
        stars_per_day=None,
    )
