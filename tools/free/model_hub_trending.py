"""GET /api/model-hub-trending."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from tools.sources.huggingface import LAST_CHANGE, MODELS_LIKED_7D, Model, ModelList
from toolserver import (
    CardValue,
    FallbackReader,
    Payload,
    Picture,
    SourceFrozen,
    Timestamp,
    ToolContext,
    read_beside,
    tool,
    up_to,
)

SHOWN = 15


class ModelItem(Payload):
    id: str = Field(description="owner/name on the hub")
    author: str | None = Field(description="Owner of the model; null: none")
    name: str = Field(description="Name without the owner")
    likes: int = Field(description="Likes of all time")
    downloads: int | None = Field(description="Downloads in the past 30 days; null: not given")
    pipeline: str | None = Field(
        examples=["text-generation"],
        description="Task that the model is for, in the hub's words; null: the author did not say",
    )
    url: str = Field(description="Page of the model")
    updated: Timestamp | None = Field(description="When it was last changed; null: not given")


class ModelHubTrending(RootModel[Annotated[list[ModelItem], Field(max_length=SHOWN, description="As the hub orders")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


@tool(
    path="/api/model-hub-trending",
    title="Trending AI models",
    search_hint="hottest new open LLM models Hugging Face popular download",
    ttl_s=600,
    sources=(MODELS_LIKED_7D, LAST_CHANGE),
    headline=CardValue("0.id", "", "{0.likes} likes"),
    pictures=(Picture("bars", "Likes", values=("likes",), label="id"),),
)
async def model_hub_trending(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> ModelHubTrending:
    """The AI models on Hugging Face that gained the most likes in the past 7 days, in that order, with downloads and
    what they are for. Use it for "which models are popular right now?".

    Shape: 10 to 15 models. `pipeline` is null where the author did not say. When the hub does not sort by likes, its
    own trending order is used and a warning says so; `updated` is null then.
    Source: Hugging Face Hub, refreshed every 10 minutes; stale when the whole hub has stood still for an hour.
    """
    listed = await ctx.first("data", read_living_list)
    if listed.by_score:
        ctx.warn("data", "degraded_fallback", "The order is the hub's trending score, not likes of 7 days.")
    return ModelHubTrending([shown(model) for model in ctx.page(listed.models[:SHOWN], limit)])


async def read_living_list(reading: FallbackReader) -> ModelList:
    """Return the list of a hub that is alive. Raises SourceFrozen when no model was changed recently."""
    both = await read_beside(reading, (MODELS_LIKED_7D, None), (LAST_CHANGE, None))
    listed, changed = both
    if isinstance(changed, SourceFrozen):
        raise changed
    return listed


def shown(model: Model) -> ModelItem:
    return ModelItem(
        id=model.id,
        author=model.author,
        name=model.name,
        likes=model.likes,
        downloads=model.downloads,
        pipeline=model.pipeline,
        url=model.url,
        updated=model.updated_at,
    )
