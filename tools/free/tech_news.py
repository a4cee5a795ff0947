"""GET /api/tech-news."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from tools.shared.front_page import SHOWN, SOURCES, StoryItem, front_page
from toolserver import CardValue, Picture, ToolContext, tool, up_to


class TechNews(RootModel[Annotated[list[StoryItem], Field(max_length=SHOWN, description="In page order")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


@tool(
    path="/api/tech-news",
    title="Tech news front page",
    search_hint="top stories on Hacker News hackernews HN headlines startups programming articles",
    toolset="core",
    ttl_s=60,
    sources=SOURCES,
    headline=CardValue("0.title", "", "{0.score} points"),
    pictures=(Picture("bars", "Points", values=("score",), label="title"),),
)
async def tech_news(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> TechNews:
    """The stories on the front page of Hacker News right now, in page order, with score, number of comments and
    links. Use it for "what is the tech world talking about?".

    Shape: 10 to 30 stories; jobs and polls are left out. When only search answers, the order is by score.
    Source: Hacker News, through Algolia search and the item API, refreshed every minute.
    """
    return TechNews(ctx.page(await ctx.first("data", *front_page()), limit))
