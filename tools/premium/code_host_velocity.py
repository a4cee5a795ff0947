"""GET /api/pro/code-host-velocity."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from anyio import gather
from pydantic import Field

from tools.shared.repositories import (
    ANONYMOUS,
    WITH_TOKEN,
    Searched,
    age_days,
    is_ai_ml,
    most_starred,
    remember,
    search_fallbacks,
    stars_24h,
)
from tools.sources.github import ACTIVE_LLM, NEW, Repo, RepoQuery
from toolserver import (
    FREE_SIBLING,
    Meaning,
    Payload,
    Picture,
    SourceError,
    Tier,
    Timestamp,
    ToolContext,
    TopLevel,
    limit_time,
    tool,
    up_to,
)

NEW_DAYS, ACTIVE_DAYS = 7, 30
TRENDING, ACTIVE, TOPICS, TOP_TOPICS = 30, 15, 10, 20
BUDGET_S = 11.0  # after a burst of searches the next one is seven seconds away
RETRY_S = 60.0
NEWEST, LIVELY = "trending_repos", "ai_ml_repos_active_30d"

OwnerType = Literal["User", "Organization"]
NOTES = {
    "methodology": "trending_repos: created in the past 7 days, most stars first. ai_ml_repos_active_30d: topic llm,"
    " more than 50 stars, pushed in the past 30 days, most stars first. Forks and archives are left out.",
    "velocity": "stars_per_day is stars by age, a mean over the repository's life; stars_24h is the difference to our"
    " own count of 22 to 26 hours before, null where there was none.",
    "ai_rule": "Words such as llm, ml, rag, mcp or transformer, or phrases such as machine learning, in name,"
    " description or topics; agent alone does not count.",
    "attribution": "Data of GitHub's search.",
    "limits": "30 repositories a search: a sample of the most starred, not all that is new.",
}


class VelocityWindow(Payload):
    created_within_days: int = Field(description="Age in days of the repositories in trending_repos")
    active_within_days: int = Field(description="Days in which those of ai_ml_repos_active_30d were pushed to")


class VelocityRepo(Payload):
    full_name: str = Field(description="owner/name")
    description: str | None = Field(description="The owner's description, cut at 200 characters; null: none")
    url: str = Field(description="Page of the repository on GitHub")
    language: str | None = Field(description="Language that GitHub finds most of; null: none")
    topics: list[str] = Field(max_length=TOPICS, description="Topics that the owner chose, at most 10")
    license: str | None = Field(description="SPDX identifier; null: none or not recognised")
    owner: str = Field(description="Name of the owner")
    owner_type: OwnerType | None = Field(description="Kind of owner; null: neither of the two")
    stars: int = Field(description="Stars in all")
    forks: int = Field(description="Forks in all")
    open_issues: int = Field(description="Open issues and pull requests")
    created_at: Timestamp = Field(description="When it was created")
    pushed_at: Timestamp | None = Field(description="When it was last pushed to; null: not given")
    stars_24h: int | None = Field(
        description="Stars gained since our count of 22 to 26 hours before; null: there was none"
    )
    is_ai_ml: bool = Field(description="Whether name, description or topics have a word of our list about AI")


class NewRepo(VelocityRepo):
    age_days: float = Field(ge=1, description="Days since it was created, at least 1")
    stars_per_day: float = Field(description="Stars by days of age: a mean over its life")


class LanguageCount(Payload):
    language: str = Field(description="Language; unknown: GitHub names none")
    count: int = Field(description="Repositories in trending_repos")
    total_stars: int = Field(description="Stars of these repositories together")


class TopicCount(Payload):
    topic: str = Field(description="Topic")
    count: int = Field(description="Repositories in trending_repos")


class VelocityTotals(Payload):
    trending_count: int | None = Field(description="Repositories in trending_repos; null: that search failed")
    total_stars_in_trending: int | None = Field(description="Their stars together; null: that search failed")
    ai_ml_in_trending_count: int | None = Field(description="Those about AI; null: that search failed")
    ai_ml_share_percent: float | None = Field(
        description="Their share, percent; null: the list is empty or its search failed"
    )
    ai_ml_active_30d_count: int | None = Field(
        description="Repositories in ai_ml_repos_active_30d; null: that search failed"
    )
    languages_in_trending: int | None = Field(
        description="Different languages that are known; null: that search failed"
    )
    auth_used: Literal["authenticated", "unauthenticated"] = Field(
        description="Whether the searches were made with a token of GitHub"
    )


class PremiumCodeHostVelocity(TopLevel):
    window: VelocityWindow = Field(description="Days that the two lists look back")
    trending_repos: list[NewRepo] | None = Field(
        max_length=TRENDING, description="Created in the past 7 days, most stars first; null: the search failed"
    )
    ai_ml_repos_active_30d: list[VelocityRepo] | None = Field(
        max_length=ACTIVE,
        description="Topic llm, over 50 stars, lately pushed to, most stars first; null: the search failed",
    )
    by_language: list[LanguageCount] | None = Field(
        description="trending_repos by language, most first; null: the search failed"
    )
    by_topic: list[TopicCount] | None = Field(
        max_length=TOP_TOPICS, description="trending_repos by topic, the 20 most frequent; null: the search failed"
    )
    aggregate: VelocityTotals = Field(description="Counts over both lists")
    notes: dict[str, str] = Field(description="Remarks on method and limits")


class RepositoryMoment(NamedTuple):
    """The context, whose history has the star counts, and the time of the search."""

    ctx: ToolContext
    at: datetime


@tool(
    path="/api/pro/code-host-velocity",
    title="Repository velocity",
    search_hint="github stars growth fastest growing repositories per day",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=1800,
    sla_s=3600,
    toolset="all",
    tags={FREE_SIBLING: "code_host_trending"},
    sources=(WITH_TOKEN, ANONYMOUS),
    pictures=(Picture("bars", "Stars by repository", rows="trending_repos", values=("stars",), label="full_name"),),
)
async def premium_code_host_velocity(
    ctx: ToolContext, limit: Annotated[int, up_to(TRENDING)] = TRENDING
) -> PremiumCodeHostVelocity:
    """What gains stars on GitHub: the 30 most starred repositories of the past week with stars per day and in the last
    24 hours, the 15 most starred active LLM repositories, and counts by language, topic and AI share. For a plain
    list use code_host_trending.

    Shape: a list whose search failed is null, with a warning, and so is what is counted from it. stars_24h is null
    until a repository was counted a day before.
    Chart: `trending_repos` as bars of `stars_per_day` by `full_name`, or as points of `age_days` and `stars`;
    `by_language` as a pie of `count`.
    Source: two GitHub searches, with the token when one is set; star counts kept by the hour for 30 days.
    Errors: 503 when both searches fail. Nothing is charged then, nor when both lists are empty.
    """
    queries = {
        NEWEST: RepoQuery(NEW, (ctx.now - timedelta(days=NEW_DAYS)).date()),
        LIVELY: RepoQuery(ACTIVE_LLM, (ctx.now - timedelta(days=ACTIVE_DAYS)).date()),
    }
    new, active = await gather(
        *(ctx.attempt(section, *limit_time(search_fallbacks(query), BUDGET_S)) for section, query in queries.items())
    )
    if isinstance(new, SourceError) and isinstance(active, SourceError):
        raise new
    fresh, lively = (usable(ctx, name, search) for name, search in ((NEWEST, new), (LIVELY, active)))
    trending = fresh and [
        trending_repo(repo, RepositoryMoment(ctx, fresh.at)) for repo in most_starred(fresh.listed, TRENDING)
    ]
    llms = lively and [
        velocity_repo(repo, RepositoryMoment(ctx, lively.at)) for repo in most_starred(lively.listed, ACTIVE)
    ]
    if not (trending or llms):
        ctx.mark_empty()
    return PremiumCodeHostVelocity(
        window=VelocityWindow(created_within_days=NEW_DAYS, active_within_days=ACTIVE_DAYS),
        trending_repos=trending and ctx.page(trending, limit, NEWEST),
        ai_ml_repos_active_30d=llms and ctx.page(llms, limit, LIVELY),
        by_language=None if trending is None else by_language(trending),
        by_topic=None if trending is None else by_topic(trending),
        aggregate=totals(trending, llms, authenticated=all(f.authenticated for f in (fresh, lively) if f)),
        notes=NOTES,
    )


def usable(ctx: ToolContext, section: str, search: Searched | SourceError) -> Searched | None:
    """Keep the stars of a search and return it; None after a failure, which also shortens the answer's lifetime."""
    if isinstance(search, SourceError):
        ctx.shorten(RETRY_S)
        return None
    if search.listed.incomplete:
        ctx.warn(section, "partial", "GitHub stopped before its search was complete.", ANONYMOUS.name)
    remember(ctx.history, search)
    return search


def velocity_repo(repo: Repo, moment: RepositoryMoment) -> VelocityRepo:
    return VelocityRepo(
        full_name=repo.full_name,
        description=repo.description,
        url=repo.url,
        language=repo.language,
        topics=list(repo.topics[:TOPICS]),
        license=repo.license,
        owner=repo.owner,
        owner_type=owner_type(repo.owner_type),
        stars=repo.stars,
        forks=repo.forks,
        open_issues=repo.open_issues,
        created_at=repo.created_at,
        pushed_at=repo.pushed_at,
        stars_24h=stars_24h(moment.ctx.history, repo, moment.at),
        is_ai_ml=is_ai_ml(repo),
    )


def trending_repo(repo: Repo, moment: RepositoryMoment) -> NewRepo:
    age = age_days(repo, moment.at)
    return NewRepo(**dict(velocity_repo(repo, moment)), age_days=age, stars_per_day=round(repo.stars / age, 1))


def owner_type(text: str | None) -> OwnerType | None:
    return "User" if text == "User" else "Organization" if text == "Organization" else None


def by_language(repos: Sequence[NewRepo]) -> list[LanguageCount]:
    """Count repositories by language, most first; of equal counts, the one with more stars."""
    counts, stars = Counter[str](), Counter[str]()
    for repo in repos:
        counts[repo.language or "unknown"] += 1
        stars[repo.language or "unknown"] += repo.stars
    order = sorted(counts, key=lambda name: (-counts[name], -stars[name], name))
    return [LanguageCount(language=name, count=counts[name], total_stars=stars[name]) for name in order]


def by_topic(repos: Sequence[NewRepo]) -> list[TopicCount]:
    """Count repositories by topic, most first."""
    counts = Counter(topic for repo in repos for topic in dict.fromkeys(repo.topics))
    order = sorted(counts, key=lambda topic: (-counts[topic], topic))
    return [TopicCount(topic=topic, count=counts[topic]) for topic in order[:TOP_TOPICS]]


def totals(
    trending: Sequence[NewRepo] | None, active: Sequence[VelocityRepo] | None, *, authenticated: bool
) -> VelocityTotals:
    """Return the counts of the lists; null for a list that failed, and for a share of an empty one."""
    ai = None if trending is None else sum(repo.is_ai_ml for repo in trending)
    return VelocityTotals(
        trending_count=None if trending is None else len(trending),
        total_stars_in_trending=None if trending is None else sum(repo.stars for repo in trending),
        ai_ml_in_trending_count=ai,
        ai_ml_share_percent=round(100 * ai / len(trending), 1) if trending and ai is not None else None,
        ai_ml_active_30d_count=None if active is None else len(active),
        languages_in_trending=None if trending is None else len({repo.language for repo in trending} - {None}),
        auth_used="authenticated" if authenticated else "unauthenticated",
    )


STARS_PER_DAY = Meaning(
    "pro/code-host-velocity.stars_per_day",
    "Stars by days of age, at least one: a mean over the life of a repository, and no measure of GitHub's",
)
